"""`from_jax`: functions that JAX traces, as functions on plugrt's arrays and backends."""

from __future__ import annotations

import dataclasses
import functools
import threading
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt.errors import (
    ArgumentTypeError,
    FloatingPointFault,
    IntegerOverflow,
    MissingJaxExtra,
    NeedsJaxBackend,
    NotAnArray,
    Unimplemented,
)
from plugrt.transforms import jax_lowering
from plugrt_cpu.client import CpuClient
from support.behaviour import behaviour
from support.distributions import run_python
from support.jax_oracle import jax

X = np.float32([1.0, 2.0, 3.0])


@jax.tree_util.register_pytree_node_class
class Pair:
    """A container that is registered with JAX alone; its leaves are in reverse order."""

    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = first, second

    def tree_flatten(self) -> Any:
        return (self.second, self.first), "pair"

    @classmethod
    def tree_unflatten(cls, data: Any, children: Any) -> Any:
        assert data == "pair"
        return cls(*reversed(children))


@functools.partial(jax.tree_util.register_dataclass, data_fields=["w"], meta_fields=["power"])
@dataclasses.dataclass
class Layer:
    w: Any
    power: int


@functools.partial(jax.tree_util.register_dataclass, data_fields=["value"], meta_fields=[])
@dataclasses.dataclass
class Wrapped:
    value: Any


class Point(NamedTuple):
    x: Any
    y: Any


def counted(f: Callable[..., Any]) -> tuple[Callable[..., Any], list[int]]:
    """Returns a function and a list that grows with each trace."""
    traced: list[int] = []

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        traced.append(1)
        return f(*args, **kwargs)

    return call, traced


@behaviour(20, "a program is traced once for the kinds of the arguments: shape, dtype, weak type, "
           "structure, static values; calls with the same kinds run it again")  # fmt: skip
def test_traced_once_for_each_kind_of_arguments() -> None:
    f, traced = counted(lambda x, n=1: jax.tree.map(lambda v: v * n, x))
    ours = plugrt.from_jax(f, static_argnums=1)
    for x, n, count in [
        (X, 1, 1), (X + 1, 1, 1), (plugrt.device_put(X), 1, 1), (X, 2, 2), (X, 2.0, 3),
        (X[:2], 1, 4), (np.int32([1]), 1, 5), (2.0, 1, 6), (np.float32(2), 1, 7),
        ({"a": X}, 1, 8), ([X], 1, 9), ({"a": X}, 1, 9),
    ]:  # fmt: skip
        found = ours(x, n)
        expected = jax.tree.map(lambda v, n=n: v * n, x)
        assert [np.asarray(v).tolist() for v in jax.tree.leaves(found)] == [
            np.asarray(v).tolist() for v in jax.tree.leaves(expected)
        ]
        assert len(traced) == count
    assert ours(X, n=2).tolist() == (X * 2).tolist()
    assert plugrt.from_jax(f, static_argnames="n")(X, n=2).tolist() == (X * 2).tolist()
    before = len(traced)
    ours.clear_cache()
    ours(X, 1)
    assert len(traced) == before + 1


@behaviour(20, "what `jax.jit(donate_argnums=)` donates is donated, and so are the donated "
"arguments of from_jax")  # fmt: skip
def test_donation_is_kept() -> None:
    def step(state: Any, x: Any) -> Any:
        return {"n": state["n"] + 1, "w": state["w"] + x}

    for f in (
        plugrt.from_jax(jax.jit(step, donate_argnums=0)),
        plugrt.from_jax(step, donate_argnums=0),
        plugrt.from_jax(jax.jit(step, donate_argnames="state")),
    ):
        # JAX orders the dict by its keys, like plugrt.
        state = plugrt.device_put({"w": X, "n": np.int32(0)})
        x = plugrt.device_put(X)
        after = f(state, x)
        assert after["w"].tolist() == (X + X).tolist()
        assert [a.is_deleted() for a in (state["w"], state["n"], x)] == [True, True, False]
    pair = Pair(plugrt.device_put(X), plugrt.device_put(np.int32(2)))
    scale = jax.jit(lambda pair, y: pair.first * pair.second, donate_argnums=0)
    with pytest.warns(UserWarning, match="donated buffers were not usable: int32"):
        assert plugrt.from_jax(scale)(pair, X).tolist() == (2 * X).tolist()
    assert [pair.first.is_deleted(), pair.second.is_deleted()] == [True, False]


@behaviour(20, "pytrees go in and come out, classes that are registered with JAX among them, also "
           "through plugrt.jit")  # fmt: skip
def test_pytrees_are_those_of_jax() -> None:
    def f(pair: Any, layer: Any, *rest: Any, **named: Any) -> Any:
        first = pair.first * layer.w**layer.power
        return Pair(first, pair.second), Layer(layer.w + 1, 7), Point(None, rest), named

    ours = plugrt.from_jax(f)
    for call in (ours, plugrt.jit(ours), plugrt.jit(lambda *a, **k: ours(*a, **k))):
        found = call(Pair(X, {"b": 1.0, "a": 2}), Layer(X, 2), X, k=(X,))
        pair, layer, point, named = found
        assert type(pair) is Pair
        assert pair.first.tolist() == (X**3).tolist()
        assert {k: v.item() for k, v in pair.second.items()} == {"b": 1.0, "a": 2}
        assert (layer.w.tolist(), layer.power) == ((X + 1).tolist(), 7)
        assert type(point) is Point
        assert point.x is None
        assert [v.tolist() for v in point.y] == [X.tolist()]
        assert [v.tolist() for v in named["k"]] == [X.tolist()]
    assert plugrt.from_jax(lambda x: x)(None) is None
    wrapped = plugrt.from_jax(lambda x: {"new": Wrapped(x)})(X)["new"]  # only in results
    assert type(wrapped) is Wrapped
    assert wrapped.value.tolist() == X.tolist()
    assert plugrt.from_jax(lambda: jnp.arange(3))().tolist() == [0, 1, 2]


def test_a_container_that_only_plugrt_knows_is_refused() -> None:
    class Own:
        pass

    plugrt.tree.register_node(Own, lambda x: ([X], None), lambda _, children: Own())
    with pytest.raises(ArgumentTypeError, match=r"Own, a container for plugrt.*register_pytree"):
        plugrt.from_jax(lambda x: X)(Own())


@behaviour(20, "JAX's settings are part of the key: x64, matmul precision, random bits and such "
           "changed between calls give another program, and back the first again")  # fmt: skip
def test_settings_of_jax_are_part_of_the_key() -> None:
    f, traced = counted(lambda x: (x * 0.1, jnp.zeros(2)))
    ours = plugrt.from_jax(f)
    for _ in range(2):
        assert [a.dtype for a in ours(0.5)] == [np.float32, np.float32]
        with jax.enable_x64(True):
            wide, zeros = ours(0.5)
            assert [wide.dtype, zeros.dtype] == [np.float64, np.float64]
            assert wide.item() == 0.5 * 0.1
            assert ours.eval_shape(0.5)[1].dtype == np.float64
    assert len(traced) == 2
    ours.clear_cache()
    with jax.enable_x64(True):
        ours(0.5)
    assert len(traced) == 3
    product = plugrt.from_jax(jnp.dot)
    square = np.ones((2, 2), np.float32)
    with jax.default_matmul_precision("highest"):
        assert "HIGHEST" in product.lower(square, square).as_text()
    assert "HIGHEST" not in product.lower(square, square).as_text()
    bits = plugrt.from_jax(lambda: jax.random.bits(jax.random.PRNGKey(0), (4,)))
    found = {}
    for name in ("threefry2x32", "rbg", "threefry2x32"):
        with jax.default_prng_impl(name):
            found.setdefault(name, []).append(bits().tolist())
            assert bits.lower() is not None
    assert found["threefry2x32"][0] == found["threefry2x32"][1] != found["rbg"][0]
    with jax.numpy_dtype_promotion("strict"), pytest.raises(ValueError, match="strict"):
        plugrt.from_jax(lambda x, y: x + y)(X, np.int32([1, 2, 3]))


@pytest.mark.parametrize("name", jax_lowering.SETTINGS)
def test_each_setting_is_read(name: str) -> None:
    before = getattr(jax.config, f"jax_{name}")
    other = {
        "default_matmul_precision": "highest",
        "numpy_dtype_promotion": "strict",
        "numpy_rank_promotion": "raise",
        "default_prng_impl": "rbg",
        "random_seed_offset": 7,
        "explicit_x64_dtypes": "error",
    }.get(name, not before)
    key = jax_lowering.read_settings()
    jax.config.update(f"jax_{name}", other)
    try:
        assert jax_lowering.read_settings() != key
    finally:
        jax.config.update(f"jax_{name}", before)
    assert jax_lowering.read_settings() == key


def test_settings_of_jax_are_those_of_the_thread() -> None:
    ours = plugrt.from_jax(lambda: jnp.zeros(1))
    ready, go = threading.Event(), threading.Event()
    found = []

    def other() -> None:
        with jax.enable_x64(True):
            ready.set()
            go.wait(60)
            found.append(ours().dtype)

    thread = threading.Thread(target=other)
    thread.start()
    ready.wait(60)
    assert ours().dtype == np.float32
    go.set()
    thread.join()
    assert found == [np.float64]


@behaviour(20, "with jax_enable_x64 off 64-bit arguments are narrowed with a warning, as by JAX; "
           "with it on Python numbers keep all their digits; an integer beyond 32 bits is "
           "refused", jax="narrows without a word")  # fmt: skip
def test_widths_are_jaxs() -> None:
    ours = plugrt.from_jax(lambda x: x)
    with pytest.warns(UserWarning, match=r"argument x of '<lambda>' is float64 .* jax_enable_x64"):
        assert ours(np.float64(0.1)).item() == np.float32(0.1)
    with pytest.raises(IntegerOverflow, match=r"argument x .* jax_enable_x64"):
        ours(2**40)
    with jax.enable_x64(True):
        outer = plugrt.jit(lambda x: ours(x))
        for call in (ours, outer, lambda x: plugrt.jit(lambda: ours(x))()):
            assert ours(2**40).item() == 2**40
            if call is outer:
                continue  # the outer jit makes it 32 bits wide, plugrt's default
            assert call(0.1).item() == 0.1
            assert call(0.1).dtype == np.float64
        weak = plugrt.jit(lambda x: x)(0.1)  # a weakly typed float32
        double = plugrt.from_jax(lambda x: x * 2)
        assert [double(x).item() for x in (0.1, weak, 0.1)] == [0.2, 2 * np.float32(0.1), 0.2]
        assert ours(3).dtype == np.int64
        assert ours(True).dtype == np.bool_


@behaviour(20, "weak types go in and come out, so that results promote as under JAX")
def test_weak_types() -> None:
    half = np.ones(2, np.float16)
    ours = plugrt.from_jax(lambda x, y: (x * y, 2 * x))
    assert ours(half, 3.0)[0].dtype == np.float16
    weak = ours(2.0, 3.0)[0]
    assert (weak * xp.asarray(half)).dtype == np.float16
    assert plugrt.jit(lambda x: ours(x, 3.0)[0] * x)(half).dtype == np.float16


@behaviour(20, "the result is called in functions of plugrt.jit, in control flow and pmap, lowered "
           "ahead of time, and under disable_jit")  # fmt: skip
def test_composition() -> None:
    f, traced = counted(jax.grad(lambda x: jnp.sum(jax.jit(jnp.sin)(x) ** 2)))
    ours = plugrt.from_jax(f)
    expected = 2 * np.sin(X) * np.cos(X)
    outer = plugrt.jit(lambda x: (ours(x) + ours(x), ours(x)))
    np.testing.assert_allclose(outer(X)[0], 2 * expected, rtol=1e-5)
    assert len(traced) == 1
    text = outer.lower(X).as_text()
    assert text.count("call @") >= 3
    assert text.count("stablehlo.cosine") == 1
    total = plugrt.jit(lambda x: plugrt.lax.fori_loop(0, 3, lambda _, c: c + ours(x), 0 * x))
    np.testing.assert_allclose(total(X), 3 * expected, rtol=1e-5)
    count = plugrt.local_device_count()
    mapped = plugrt.pmap(lambda x: plugrt.lax.psum(ours(x), "i"), axis_name="i")
    np.testing.assert_allclose(mapped(np.stack([X] * count))[0], count * expected, rtol=1e-5)
    compiled = ours.lower(plugrt.ShapeDtypeStruct((3,), np.float32)).compile()
    np.testing.assert_allclose(compiled(X), expected, rtol=1e-5)
    assert ours.eval_shape(jax.ShapeDtypeStruct((3,), np.float32)).shape == (3,)
    with plugrt.disable_jit():
        found = ours(X)
    assert type(found) is plugrt.Array
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    with pytest.raises(ArgumentTypeError, match="give from_jax the outermost function"):
        jax.jit(lambda x: ours(x))(X)


def test_methods_partials_and_callables() -> None:
    class Model:
        scale = 3.0

        def __call__(self, x: Any) -> Any:
            return x * self.scale

        double = plugrt.from_jax(lambda self, x: x * 2 * self.scale, static_argnums=0)

    assert plugrt.from_jax(Model())(X).tolist() == (3 * X).tolist()
    assert Model().double(X).tolist() == (6 * X).tolist()
    assert plugrt.from_jax(functools.partial(jnp.sum, axis=0))(X).item() == 6
    assert plugrt.from_jax(jax.jit(lambda x, n: x * n, static_argnums=1), static_argnums=1)(
        X, 2
    ).tolist() == [2, 4, 6]


@behaviour(20, "`debug_nans` names the operation and the line of the function that JAX traced")
def test_debug_nans_names_the_line() -> None:
    ours = plugrt.from_jax(lambda x: jnp.log(x) * 0)
    with plugrt.debug_nans(), pytest.raises(FloatingPointFault, match=r"log .*test_from_jax.py:"):
        ours(-X)


@behaviour(20, "arrays of JAX's are taken by their values, what the function closes over too; its "
           "tracers and typed keys are refused with the cure; keys of plugrt's go in")  # fmt: skip
def test_arrays_of_jax() -> None:
    theirs = jnp.asarray(X)
    assert plugrt.from_jax(lambda x: x + theirs)(theirs).tolist() == (2 * X).tolist()
    with pytest.raises(NotAnArray, match=r"argument k of .*key_data\(key\)"):
        plugrt.from_jax(lambda k: jax.random.normal(k))(jax.random.key(0))
    key = plugrt.random.key(3)
    ours = plugrt.from_jax(lambda k: (jax.random.normal(k), jax.random.split(k)))(key)
    theirs = jax.random.key(3)
    np.testing.assert_array_equal(ours[0], jax.random.normal(theirs))
    assert ours[1].dtype == key.dtype
    np.testing.assert_array_equal(
        plugrt.random.key_data(ours[1]), jax.random.key_data(jax.random.split(theirs))
    )
    with pytest.raises(NotAnArray, match="no gradient of integers"):
        plugrt.from_jax(jax.grad(lambda n: 1.0 * n, allow_int=True))(3)


def closes_over_ours(x: Any) -> Any:
    return jnp.sin(plugrt.device_put(X)) + x


def prints(x: Any) -> Any:
    jax.debug.print("{x}", x=x)
    return x


def computes_meanwhile(x: Any) -> Any:
    with jax.ensure_compile_time_eval():
        return x + jnp.sin(jnp.float32(1))


def over(count: int) -> jax.sharding.NamedSharding:
    """Returns a sharding of JAX's over a mesh of ``count`` devices."""
    axes = (jax.sharding.AxisType.Auto,)  # versions have different defaults
    mesh = jax.sharding.AbstractMesh((count,), ("x",), axes)
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))


@behaviour(20, "what JAX cannot hand over is refused with the reason: callbacks, values that JAX "
           "computes meanwhile, arrays of plugrt's from outside", jax="runs them")  # fmt: skip
@pytest.mark.parametrize(("f", "error", "words"), [
    (prints, Unimplemented, r"'prints' calls Python .*plugrt\.debug\.print"),
    (lambda x: jax.pure_callback(np.sin, x, x), Unimplemented, "calls Python"),
    (computes_meanwhile, NeedsJaxBackend, "ensure_compile_time_eval.*Compute such values with"),
    (closes_over_ours, TypeError, "not a valid JAX type"),
    (jax.jit(lambda x, n: x * len(n), static_argnums=1), ValueError, "static"),
], ids=["print", "callback", "eager", "closure", "static"])  # fmt: skip
def test_refused(f: Any, error: type[Exception], words: str) -> None:
    args = (X, 3) if error is ValueError else (X,)
    with pytest.raises(error, match=words) as caught:
        plugrt.from_jax(f)(*args)
    if error in (TypeError, ValueError):
        cure = {TypeError: "pass it as an argument", ValueError: r"static_argnums=…"}[error]
        assert any(cure in note for note in caught.value.__notes__)


@pytest.mark.skipif(
    not hasattr(jax.config, "jax_use_shardy_partitioner"), reason="no other partitioner here"
)
def test_several_devices_are_refused_without_shardy() -> None:
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", False)
    try:
        with pytest.raises(Unimplemented, match="over 3 devices, without Shardy's meshes"):
            plugrt.from_jax(jax.jit(lambda x: x + 1, in_shardings=over(3)))(X)
    finally:
        jax.config.update("jax_use_shardy_partitioner", before)


def test_a_mesh_of_one_device_is_dropped() -> None:
    one = over(1)
    f = jax.jit(lambda x: jax.lax.with_sharding_constraint(x + 1, one), in_shardings=one)
    assert plugrt.from_jax(f)(X).tolist() == (X + 1).tolist()


@behaviour(20, "a function that JAX lowers to LAPACK runs on `cpu`; elsewhere the refusal names "
           "the primitive", jax="has LAPACK on its own backends")  # fmt: skip
def test_lapack() -> None:
    matrix = np.float32([[2, 1], [1, 3]])
    values = plugrt.from_jax(lambda a: jnp.linalg.eigh(a)[0])
    if isinstance(plugrt.get_backend(), CpuClient):
        np.testing.assert_allclose(values(matrix), np.linalg.eigvalsh(matrix), rtol=1e-5)
        # JAX adds partitioning rules, which the lowered program must not have.
        assert "sdy." not in values.lower(matrix).as_text()
    else:
        with pytest.raises(Unimplemented, match=r"cannot lower .* 'eigh'"):
            values(matrix)


@behaviour(20, "what the function raises keeps its type and its lines; plugrt's own are left out")
def test_errors_of_the_function_keep_their_traceback() -> None:
    def f(x: Any) -> Any:
        return {}["missing"]

    with pytest.raises(KeyError, match="missing") as caught:
        plugrt.from_jax(f)(X)
    frames = [entry.name for entry in traceback.extract_tb(caught.value.__traceback__)]
    assert frames == ["test_errors_of_the_function_keep_their_traceback", "f"]


def test_jax_knows_the_function_by_its_name_and_its_lines() -> None:
    def chooses(scale: Any) -> Any:
        return 1 if scale > 0 else 2

    with pytest.raises(jax.errors.TracerBoolConversionError, match="argument scale") as caught:
        plugrt.from_jax(chooses)(X[0])
    assert "tracing the function chooses at" in str(caught.value)
    module = plugrt.from_jax(jnp.tanh).lower(X).compiler_ir()
    text = module.operation.get_asm(enable_debug_info=True)
    assert "test_from_jax.py" in text
    assert "jax_lowering.py" not in text


@pytest.mark.parametrize(("call", "words"), [
    (lambda: plugrt.from_jax(3), "takes a function; got 3"),
    (lambda: plugrt.from_jax(jnp.sin, device=1), "from_jax's device must be"),
    (lambda: plugrt.from_jax(jnp.sin, keep_unused="yes"), "keep_unused"),
    (lambda: plugrt.from_jax(jnp.sin)("a"), "of 'sin' is 'a' of type str"),
    (lambda: plugrt.from_jax(jnp.sin, device=plugrt.devices()[0], backend="cpu"), "not both"),
    (lambda: plugrt.from_jax(lambda x: x, static_argnums=0, donate_argnums=0), "static and don"),
], ids=["function", "device", "flag", "argument", "both", "static"])  # fmt: skip
def test_wrong_arguments(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(plugrt.errors.PlugrtError, match=words):
        call()


@behaviour(20, "without jax the error names the extra to install, and `import plugrt` needs none",
           jax="is jax")  # fmt: skip
def test_without_jax() -> None:
    done = run_python(
        """
        import sys
        sys.modules["jax"] = None
        import plugrt
        print("imported")
        plugrt.from_jax(abs)
        """
    )
    assert done.stdout == "imported\n"
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"plugrt.errors.{MissingJaxExtra.__name__}: from_jax has JAX trace")
    assert 'pip install "plugrt[jax]"' in last


def test_a_model_with_functions_among_its_leaves_is_told_how_to_be_passed() -> None:
    """Equinox's models have their activation functions as leaves."""
    model = {"weight": np.float32([1, 2]), "activation": jax.nn.relu}
    gradient = plugrt.from_jax(jax.grad(lambda m, x: jnp.sum(m["activation"](m["weight"] * x))))
    with pytest.raises(NotAnArray, match=r"equinox\.partition\(model, equinox\.is_array\)"):
        gradient(model, np.float32(3))


@pytest.mark.parametrize(
    "function",
    [
        jax.jit(lambda x, y: y + 1),
        jax.jit(lambda x, y: (x * 2, y + 1)[1]),
        jax.jit(lambda x, y: jax.jit(lambda x, y: y * jnp.ones(3))(x, y)),
        jax.jit(lambda x, y: jax.jit(lambda a, b: (jax.jit(jnp.sin)(a), b)[1])(x, y)),
        jax.jit(lambda x, y: jax.lax.fori_loop(0, 2, lambda i, c: (c[0], c[1] + 1), (x, y))[1]),
        jax.checkpoint(lambda x, y: y + 1),
    ],
)
def test_an_argument_that_no_result_needs_does_not_decide_where_it_runs(function: Any) -> None:
    """Same as JAX: arguments that a function, or one that it calls, does not use."""
    ours = [plugrt.device_put(X, plugrt.devices()[3]), plugrt.device_put(X)]
    theirs = [jax.device_put(X, jax.devices()[3]), jax.device_put(X)]
    found, expected = plugrt.from_jax(function)(*ours), jax.jit(function)(*theirs)
    np.testing.assert_allclose(found, expected)
    assert (found.committed, expected.committed) == (False, False)
    assert plugrt.from_jax(function)(*reversed(ours)).devices() == {plugrt.devices()[3]}
