"""`pure_callback`, `io_callback` and `debug`: Python functions that programs call."""

from __future__ import annotations

import contextlib
import gc
import re
import threading
import traceback
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax
from plugrt.errors import (
    ArgumentError,
    ArgumentTypeError,
    DtypeError,
    Internal,
    NotAnArray,
    ShapeError,
    StructureError,
    Unimplemented,
)
from plugrt_sdk import BackendClient
from support.behaviour import behaviour
from support.late_client import Adder

FRAME = re.compile(r'File "(.*)", line')
SCALAR = plugrt.ShapeDtypeStruct((), "float32")
THREE = plugrt.ShapeDtypeStruct((3,), "float32")


@pytest.fixture(autouse=True)
def callbacks() -> Any:
    """Skips if programs cannot call Python; waits for all effects after the test."""
    client = plugrt.get_backend()
    if not client.capabilities.host_callbacks:
        pytest.skip(f"{client.platform} does not declare host_callbacks")
    yield
    try:
        plugrt.effects_barrier()
    except Internal as error:
        pytest.fail(f"a failure was left behind: {error}")


def jitted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a jitted function, since a plain call runs a callback without a program."""
    return plugrt.jit(function)


@behaviour(6, "`pure_callback` gives a program what a Python function returns")
def test_a_program_computes_with_what_python_returns() -> None:
    f = plugrt.jit(lambda x: plugrt.pure_callback(np.sin, THREE, x) * 2)
    x = np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(f(xp.asarray(x)), np.sin(x) * 2)
    np.testing.assert_array_equal(f(xp.asarray(x + 1)), np.sin(x + 1) * 2)


@behaviour(
    6,
    "arguments and results are pytrees; the function gets NumPy arrays of its own",
    jax="its arrays, on a CPU",
)
def test_pytrees_go_in_and_out() -> None:
    got: list[Any] = []

    def swap(pair: Any, *, scale: Any) -> Any:
        got.extend([pair["a"], pair["b"], scale])
        return {"b": [pair["a"] * scale], "a": pair["b"]}

    promised = {"a": plugrt.ShapeDtypeStruct((2,), "int32"), "b": [THREE]}
    f = plugrt.jit(lambda p, s: plugrt.pure_callback(swap, promised, p, scale=s))
    found = f({"a": xp.asarray([1.0, 2, 3]), "b": xp.asarray([4, 5])}, 2.0)
    np.testing.assert_array_equal(found["a"], [4, 5])
    np.testing.assert_array_equal(found["b"][0], [2, 4, 6])
    assert all(type(x) is np.ndarray and x.flags.writeable for x in got)
    plugrt.clear_caches()
    np.testing.assert_array_equal(got[0], [1, 2, 3])  # the function may keep them


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "int32", "int64", "uint16", "float16", "float32", "float64", "complex64",
     "bfloat16", "float8_e4m3fn", "int4"],
)  # fmt: skip
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_every_dtype_and_shape_goes_through(dtype: str, shape: tuple[int, ...]) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if dtype not in plugrt.get_backend().capabilities.dtypes:
        pytest.skip(f"no {dtype} here")
    data = np.arange(int(np.prod(shape))).reshape(shape).astype(kind)
    seen: list[Any] = []

    def pass_on(x: Any) -> Any:
        seen.append((x.dtype, x.shape))
        return x

    promised = plugrt.ShapeDtypeStruct(shape, kind)
    found = jitted(lambda x: plugrt.pure_callback(pass_on, promised, x))(data)
    assert seen == [(kind, shape)] * min(data.size, 1)  # XLA calls no function for an empty result
    assert np.asarray(found).tobytes() == data.tobytes()


@behaviour(
    6, "number, shapes and dtypes of the function's results are checked, and named in the error"
)
@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (np.zeros(4, np.float32), r"the result has the shape \(4,\); float32\[3\] was promised"),
        (np.zeros(3, np.int32), r"the result has the dtype int32; float32\[3\] was promised"),
        (None, "it returned 0 arrays, None"),
        ((np.zeros(3, np.float32),) * 2, "it returned 2 arrays"),
        ("text", r"the result is 'text' of type str; float32\[3\] was promised"),
        (object(), "the result is <object"),
    ],
    ids=["shape", "dtype", "none", "pair", "text", "object"],
)
def test_results_of_a_callback_are_checked(returned: Any, words: str) -> None:
    f = plugrt.jit(lambda x: plugrt.pure_callback(lambda _: returned, THREE, x))
    with pytest.raises(Internal, match=words) as failure:
        np.asarray(f(1.0))
    assert __file__ in str(failure.value)
    with pytest.raises((ShapeError, DtypeError, StructureError, NotAnArray), match=words):
        plugrt.pure_callback(lambda _: returned, THREE, 1.0)


def test_python_numbers_and_doubles_pass_for_singles_as_in_jax() -> None:
    f = plugrt.jit(lambda x: plugrt.pure_callback(lambda v: float(v) * 2, SCALAR, x))
    assert float(f(1.5)) == 3.0
    g = plugrt.jit(lambda x: plugrt.pure_callback(lambda v: np.float64(v), SCALAR, x))
    words = r"the dtype float64; float32\[\] was promised"
    with plugrt.config.override(enable_x64=True), pytest.raises(Internal, match=words):
        np.asarray(g(np.float32(1)))


@behaviour(
    6,
    "an exception is the launch's error: with Python's traceback, the function and the user's line",
)
def test_an_exception_tells_the_line_in_the_function_and_the_line_of_the_call() -> None:
    def divide(x: Any) -> Any:
        return 1 / int(x)

    def call(x: Any) -> Any:
        return plugrt.pure_callback(divide, SCALAR, x)

    with pytest.raises(Internal) as failure:
        np.asarray(plugrt.jit(call)(0.0))
    said = failure.value.message
    line = divide.__code__.co_firstlineno
    assert said.startswith("'divide' of pure_callback, called at ")
    assert f"{__file__}:{call.__code__.co_firstlineno + 1} raised ZeroDivisionError: " in said
    assert f'File "{__file__}", line {line + 1}, in divide' in said
    assert "plugrt/" not in said.replace(__file__, "")


@behaviour(
    6,
    "`SystemExit`, `KeyboardInterrupt` and the like reach the caller as they are",
    jax="an error like others",
)
def test_exits_reach_the_caller() -> None:
    """Earlier, they became `Internal`, so that `except RuntimeError` caught Ctrl-C."""
    x, ones = np.ones(3, np.float32), np.ones(100_000, np.float32)

    class Leave(BaseException):
        pass

    def leave(_: Any) -> Any:
        raise raised

    for raised in (SystemExit(3), KeyboardInterrupt(), Leave("x")):
        for call in (
            lambda: np.asarray(jitted(lambda x: plugrt.pure_callback(leave, THREE, x))(x)),
            lambda: jitted(lambda x: xp.sin(x) + plugrt.pure_callback(leave, ones, x)[0])(
                ones
            ).block_until_ready(),
            lambda: (
                jitted(lambda x: plugrt.debug.callback(leave, x))(x),
                plugrt.effects_barrier(),
            ),
        ):
            with pytest.raises(type(raised)) as caught:
                call()
            assert caught.value is raised
            # The barrier may raise it again; the next call must not.
            with contextlib.suppress(type(raised)):
                plugrt.effects_barrier()
    np.testing.assert_array_equal(jitted(lambda x: x + 1)(x), [2, 2, 2])


def test_outside_of_a_trace_an_exception_is_its_own() -> None:
    with pytest.raises(ZeroDivisionError):
        plugrt.pure_callback(lambda x: 1 / int(x), SCALAR, 0.0)


@behaviour(6, "calls happen within loops and conditionals, as often as those run")
def test_control_flow_calls_as_often_as_it_runs() -> None:
    seen: list[tuple[str, float]] = []

    def note(name: str) -> Callable[[Any], None]:
        return lambda x: seen.append((name, float(x)))

    def tell(name: str, x: Any) -> None:
        plugrt.io_callback(note(name), None, x, ordered=True)

    def loops(x: Any) -> Any:
        x = lax.fori_loop(0, 2, lambda i, v: (tell("fori", v), v + 1)[1], x)
        x = lax.while_loop(lambda v: v < 4, lambda v: (tell("while", v), v + 1)[1], x)
        x, _ = lax.scan(lambda c, y: (c + y, tell("scan", y)), x, xp.asarray([5.0, 6.0]))
        return lax.cond(x > 0, lambda v: (tell("true", v), v)[1], lambda v: v, x)

    assert float(jitted(loops)(0.0)) == 15
    plugrt.effects_barrier()
    expected = [("fori", 0), ("fori", 1), ("while", 2), ("while", 3), ("scan", 5), ("scan", 6),
                ("true", 15)]  # fmt: skip
    assert seen == expected
    seen.clear()
    with plugrt.disable_jit():
        assert float(loops(xp.asarray(0.0))) == 15
    assert seen == expected


def test_the_condition_of_a_loop_may_call_python_in_order() -> None:
    seen: list[float] = []

    def ask(x: Any) -> Any:
        seen.append(float(x))
        return np.bool_(x < 2)

    def loop(x: Any) -> Any:
        inner = plugrt.jit(
            lambda v: plugrt.io_callback(ask, plugrt.ShapeDtypeStruct((), bool), v, ordered=True)
        )
        return lax.while_loop(inner, lambda v: v + 1, x)

    assert float(jitted(loop)(0.0)) == 2
    plugrt.effects_barrier()
    assert seen == [0, 1, 2]


@behaviour(
    7,
    "ordered calls happen in the order of the program, through inner functions, loops and branches",
)
def test_ordered_calls_keep_their_order() -> None:
    seen: list[int] = []

    def tell(n: int) -> None:
        plugrt.io_callback(lambda: seen.append(n), None, ordered=True)

    @plugrt.jit
    def inner(x: Any) -> Any:
        tell(1)
        return x

    def outer(x: Any) -> Any:
        tell(0)
        x = inner(x) + inner(x)
        plugrt.debug.callback(lambda: seen.append(2), ordered=True)
        x = lax.switch(x * 0, [lambda v: (tell(3), v)[1], lambda v: v], x)
        tell(4)
        inner(x)
        return x

    f = plugrt.jit(outer)
    for _ in range(20):
        f(1)
    plugrt.effects_barrier()
    assert seen == [0, 1, 1, 2, 3, 4, 1] * 20


@behaviour(6, "under `pmap` each device calls the function with its part")
def test_each_device_of_a_pmap_calls() -> None:
    count = plugrt.local_device_count()
    seen: list[int] = []
    f = plugrt.pmap(
        lambda x: plugrt.io_callback(
            lambda v: (seen.append(int(v)), v * 10)[1], plugrt.ShapeDtypeStruct((), "int32"), x
        )
    )
    x = np.arange(count, dtype=np.int32)
    np.testing.assert_array_equal(f(x), x * 10)
    assert sorted(seen) == [*x]
    seen.clear()
    np.testing.assert_array_equal(f(x + 1), (x + 1) * 10)
    assert sorted(seen) == [*(x + 1)]


def test_ordered_calls_of_a_pmap_keep_the_order_of_each_device() -> None:
    count = plugrt.local_device_count()
    seen: list[tuple[int, int]] = []

    def body(x: Any) -> Any:
        for n in range(3):
            plugrt.io_callback(lambda v, n=n: seen.append((int(v), n)), None, x, ordered=True)
        return x

    f = plugrt.pmap(body)
    f(np.arange(count, dtype=np.int32))
    f(np.arange(count, dtype=np.int32))
    plugrt.effects_barrier()
    for device in range(count):
        assert [n for d, n in seen if d == device] == [0, 1, 2] * 2


@behaviour(6, "a pure call whose result nobody needs is not made; one with an effect is")
def test_calls_without_use() -> None:
    seen: list[str] = []

    def f(x: Any) -> Any:
        plugrt.pure_callback(lambda v: (seen.append("pure"), v)[1], SCALAR, x)
        plugrt.io_callback(lambda v: (seen.append("io"), v)[1], SCALAR, x)
        return x

    jitted(f)(np.float32(1))
    plugrt.effects_barrier()
    assert seen == ["io"]


@behaviour(6, "a function that a program calls may run compiled code and wait for it")
def test_a_callback_may_run_compiled_code() -> None:
    triple = plugrt.jit(lambda x: x * 3)

    def outer(x: Any) -> Any:
        def call(v: Any) -> Any:
            inner = plugrt.jit(lambda w: plugrt.pure_callback(lambda u: u + 1, THREE, w))
            return triple(inner(v))

        return plugrt.pure_callback(call, THREE, x)

    found = jitted(outer)(xp.asarray([1.0, 2, 3]))
    np.testing.assert_array_equal(found, [6, 9, 12])


def test_callbacks_on_all_threads_may_wait_for_compiled_code() -> None:
    """There are more callbacks than XLA has threads, and each waits for work on those threads."""
    if type(plugrt.get_backend()).__module__.startswith("plugrt.capi"):
        pytest.skip(
            "the library runs callbacks on its few threads, where waiting for work can hang"
        )
    total = plugrt.jit(lambda x: xp.sum(x @ x))
    shape = plugrt.ShapeDtypeStruct((), "float32")
    x = np.ones((64, 64), np.float32)

    def body(v: Any) -> Any:
        return plugrt.pure_callback(lambda w: total(w), shape, v @ v)

    f = plugrt.jit(body)
    f(x).block_until_ready()
    failed: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(5):
                assert float(f(x)) == 64.0**4 * 64
        except BaseException as error:  # noqa: BLE001  # told below
            failed.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a deadlock"
    assert not failed


@behaviour(6, "`debug.print` formats while the program runs, and checks its text before")
def test_debug_print(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        plugrt.debug.print("x = {:.2f}, {name}, {y}", x, name="text", y=x * 2, ordered=True)
        plugrt.debug.print("{{}} no values", ordered=True)
        plugrt.debug.print(ordered=True)("later {}", x)
        return x

    jitted(f)(np.float32(1.5))
    plugrt.effects_barrier()
    assert capsys.readouterr().out == "x = 1.50, text, 3.0\n{{}} no values\nlater 1.5\n"
    with pytest.raises(ArgumentError, match=r"not use: \['y'\].*no f-string"):
        plugrt.debug.print("x = 1", y=1)
    with pytest.raises(ArgumentError, match=r"does not use: \[2\]"):
        plugrt.debug.print("{}", 1, 2)
    with pytest.raises(ArgumentError, match="without its first argument takes settings only"):
        plugrt.debug.print(x=1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{} {}", r"a place for argument 1, which was not given; its arguments are 1 by position"),
        ("{x}", r"a place for argument 'x', which was not given"),
        ("{:{wide}}", r"a place for argument 'wide', which was not given"),
        ("{", r"debug\.print cannot fill in '\{': Single '\{'"),
        ("{0.none}", r"cannot fill in '\{0\.none\}': .* has no attribute 'none'"),
    ],
)
def test_texts_that_cannot_be_filled_in(text: str, says: str) -> None:
    for call in (plugrt.debug.print, jitted(lambda x: plugrt.debug.print(text, x))):
        arguments = (text, 1) if call is plugrt.debug.print else (1,)
        with pytest.raises(ArgumentError, match=says):
            call(*arguments)


def test_a_value_that_the_text_does_not_suit_names_the_text() -> None:
    says = r"debug\.print cannot fill in 'x = \{:d\}': Unknown format code 'd'"
    with pytest.raises(ArgumentError, match=says):
        plugrt.debug.print("x = {:d}", 1.5)

    def launch() -> None:
        jitted(lambda x: plugrt.debug.print("x = {:d}", x))(1.5)
        plugrt.effects_barrier()

    with pytest.raises(Internal, match=rf"'x = .*' of debug\.print, called at .*{says}") as caught:
        launch()
    assert len(str(caught.value).splitlines()) == 1  # none of the user's lines raised it
    plugrt.effects_barrier()


@behaviour(6, "a callback's traceback has the user's frames; `traceback_filtering` off shows all")
def test_frames_of_a_callback() -> None:
    def outer(x: Any) -> Any:
        return plugrt.tree.map(inner, [x])[0]

    def inner(x: Any) -> Any:
        raise ValueError("within")

    def frames() -> tuple[list[str], set[str]]:
        """Returns the owners of the frames in the message, and the owners in the tracebacks."""
        with pytest.raises(Internal) as caught:
            np.asarray(jitted(lambda x: plugrt.pure_callback(outer, SCALAR, x))(0.0))
        message = caught.value.message
        shown = "".join(traceback.format_exception(caught.value)).replace(message, "")
        in_message, in_all = (
            ["mine" if file == __file__ else "plugrt" for file in FRAME.findall(text)]
            for text in (message, shown)
        )
        return in_message, {*in_all}

    assert frames() == (["mine", "mine"], {"mine"})
    plugrt.config.update("traceback_filtering", "off")
    try:
        found, in_all = frames()
    finally:
        plugrt.config.update("traceback_filtering", "auto")
    assert in_all == {"mine", "plugrt"}
    assert [where for where in found if where == "mine"] == ["mine", "mine"]
    assert found[0] == "plugrt"
    assert "plugrt" in found[found.index("mine") + 1 :]


def test_debug_callback_takes_other_things_than_arrays() -> None:
    seen: list[Any] = []
    f = plugrt.jit(
        lambda x: plugrt.debug.callback(lambda *a, **k: seen.append((a, k)), "t", x, k=None)
    )
    f(np.float32(2))
    plugrt.debug.callback(ordered=True)(seen.append, 3)
    plugrt.effects_barrier()
    assert seen == [(("t", 2.0), {"k": None}), 3]


@behaviour(6, "wrong arguments are refused when the call is traced, by name", jax="other words")
def test_wrong_use() -> None:
    with pytest.raises(ArgumentTypeError, match="pure_callback takes a function; got 3"):
        plugrt.pure_callback(3, SCALAR)  # type: ignore[arg-type]
    with pytest.raises(
        ArgumentTypeError, match=r"result_shape_dtypes\[0\]\[0\] of pure_callback must"
    ):
        plugrt.pure_callback(np.sin, [(3,)], 1.0)
    with pytest.raises(ArgumentError, match="vmap_method of pure_callback must be one of"):
        plugrt.pure_callback(np.sin, SCALAR, 1.0, vmap_method="all")
    with pytest.raises(NotAnArray, match=r"argument .* of io_callback"):
        plugrt.jit(lambda: plugrt.io_callback(print, None, "text"))()
    with plugrt.config.override(enable_x64=False), pytest.raises(DtypeError, match="64 bits"):
        plugrt.pure_callback(np.sin, plugrt.ShapeDtypeStruct((), "float64"), 1.0)


def test_functions_live_as_long_as_their_programs() -> None:
    class Function:
        def __call__(self, x: Any) -> Any:
            return x + 1

    functions = []
    for _ in range(4):
        function = Function()
        f = plugrt.jit(lambda x, function=function: plugrt.pure_callback(function, SCALAR, x))
        functions.append(weakref.ref(function))
        del function
        gc.collect()
        assert float(f(np.float32(1))) == 2
    plugrt.effects_barrier()
    gc.collect()
    assert [function() is None for function in functions] == [True, True, True, False]


def test_programs_that_call_python_are_not_saved(tmp_path: Path) -> None:
    f = plugrt.jit(lambda x: plugrt.pure_callback(lambda v: v + 1, SCALAR, x))
    g = plugrt.jit(lambda x: plugrt.pure_callback(lambda v: v + 2, SCALAR, x))
    with plugrt.config.override(
        compilation_cache_dir=str(tmp_path),
        persistent_cache_min_compile_time_secs=0.0,
        persistent_cache_min_entry_size_bytes=-1,
    ):
        assert (float(f(np.float32(1))), float(g(np.float32(1)))) == (2, 3)
    assert not [*tmp_path.iterdir()]
    with pytest.raises(Unimplemented, match=r"of pure_callback, called at .*Python"):
        f.lower(np.float32(1)).compile().serialize()


@behaviour(
    6, "a backend that cannot call Python refuses the program when it is compiled, and says why"
)
def test_a_backend_without_callbacks_refuses() -> None:
    client = BackendClient(Adder())
    with plugrt.default_device(client.devices()[0]):
        with pytest.raises(
            Unimplemented, match=r"'sin' of pure_callback, called at .*test_callbacks\.py"
        ):
            plugrt.jit(lambda x: plugrt.pure_callback(np.sin, SCALAR, x))(np.float32(1))
        np.testing.assert_array_equal(plugrt.pure_callback(np.sin, SCALAR, np.float32(0)), 0)
