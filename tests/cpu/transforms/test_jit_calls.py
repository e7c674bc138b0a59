"""`jit`: the forms of functions and of calls.

Differs from JAX: `JAX_ENABLE_X64` unset | 64-bit data are narrowed | 64-bit data keep their width,
creation functions make 32 bits; `0` is JAX's behaviour.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import functools
import inspect
import operator
import pickle
import sys
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

from plugrt import Array, config, device_put, jit
from plugrt import array_api as xp
from plugrt import tree as pytrees
from plugrt.errors import (
    ArgumentError,
    ConcretizationError,
    DeletedBuffer,
    NotAnArray,
    UnhashableStaticArgument,
)
from support.ops import add, mul, sin

X = np.arange(3, dtype=np.float32)


def test_decorator_and_call_forms() -> None:
    @jit
    def one(x: Any) -> Any:
        """Adds one."""
        return add(x, 1)

    @jit(keep_unused=True)
    def two(x: Any) -> Any:
        return add(x, 2)

    three = jit(lambda x: add(x, 3), static_argnums=())
    for f, more in ((one, 1), (two, 2), (three, 3)):
        np.testing.assert_array_equal(f(X), X + more)
    assert one.__name__ == "one"
    assert one.__doc__ == "Adds one."
    assert "one" in repr(one)


class Model:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    def plain(self, x: Any) -> Any:
        return mul(x, self.scale)

    @functools.partial(jit, static_argnums=0)
    def method(self, x: Any) -> Any:
        return mul(x, self.scale)

    @staticmethod
    @jit
    def static(x: Any) -> Any:
        return add(x, 1)

    @classmethod
    @functools.partial(jit, static_argnums=0)
    def of_class(cls, x: Any) -> Any:
        return add(x, len(cls.__name__))

    def __call__(self, x: Any) -> Any:
        return add(x, self.scale)


def test_methods_and_callables() -> None:
    two, three = Model(2.0), Model(3.0)
    np.testing.assert_array_equal(two.method(X), X * 2)
    np.testing.assert_array_equal(three.method(X), X * 3)
    np.testing.assert_array_equal(jit(two.plain)(X), X * 2)
    np.testing.assert_array_equal(jit(two)(X), X + 2)
    np.testing.assert_array_equal(jit(three)(X), X + 3)
    np.testing.assert_array_equal(Model.static(X), X + 1)
    np.testing.assert_array_equal(Model.of_class(X), X + 5)
    assert "method" in repr(two.method)
    two.method.clear_cache()
    assert inspect.signature(two.method).parameters.keys() == {"x"}


def test_a_method_whose_self_is_not_static() -> None:
    class Bad:
        @jit
        def method(self, x: Any) -> Any:
            return x

    with pytest.raises(NotAnArray, match=r"argument self of 'method'.*make it static"):
        Bad().method(X)


def test_partials_lambdas_and_builtins() -> None:
    def f(a: Any, b: Any, c: Any = 1.0) -> Any:
        return add(mul(a, b), c)

    np.testing.assert_array_equal(jit(functools.partial(f, 2.0))(X), 2 * X + 1)
    np.testing.assert_array_equal(jit(functools.partial(f, c=5.0))(X, X), X * X + 5)
    np.testing.assert_array_equal(
        jit(functools.partial(f, X), static_argnames="c")(X, c=7), X * X + 7
    )
    assert jit(operator.itemgetter("a"))({"a": device_put(X)}).shape == (3,)
    assert jit(max)((device_put(X),)).shape == (3,)
    np.testing.assert_array_equal(jit(sin)(X), np.asarray(sin(X)))


def test_copies_of_a_jitted_function_are_itself() -> None:
    f = jit(lambda x: add(x, 1))
    f(X)
    model = {"layers": [f], "w": X}
    assert copy.deepcopy(model)["layers"][0] is f


def test_jitted_functions_are_pickled_by_name_as_functions_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = ModuleType("a_module_of_the_user")

    def function(x: Any) -> Any:
        return x

    function.__module__, function.__qualname__ = module.__name__, "f"
    f = jit(function)
    vars(module)["f"] = f
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert pickle.loads(pickle.dumps(f)) is f
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(jit(lambda x: x))


def test_static_by_number_and_by_name() -> None:
    def power(x: Any, n: int, *, twice: bool = False) -> Any:
        assert type(n) is int
        result = x
        for _ in range(n - 1):
            result = mul(result, x)
        return add(result, result) if twice else result

    by_number = jit(power, static_argnums=1, static_argnames="twice")
    np.testing.assert_array_equal(by_number(X, 3), X**3)
    np.testing.assert_array_equal(by_number(X, 2, twice=True), 2 * X**2)
    by_name = jit(power, static_argnames=("n", "twice"))
    np.testing.assert_array_equal(by_name(X, 3), X**3)
    np.testing.assert_array_equal(by_name(X, n=2), X**2)
    negative = jit(lambda x, n: mul(x, n), static_argnums=-1)
    np.testing.assert_array_equal(negative(X, 4), X * 4)


def test_static_values_are_told_apart_by_type() -> None:
    seen = []

    @functools.partial(jit, static_argnums=1)
    def f(x: Any, n: Any) -> Any:
        seen.append(type(n))
        return x

    for n in (1, 1.0, True, 1, 1.0, True):
        f(device_put(X), n)
    assert seen == [int, float, bool]


def test_static_values_within_tuples_and_signs_of_zero() -> None:
    f = jit(lambda x, n: mul(x, n[0]), static_argnums=1)
    assert f(np.arange(3), (2,)).dtype == np.int64
    assert f(np.arange(3), (2.0,)).dtype == np.float64
    g = jit(lambda n: add(n, 0.0 * n), static_argnums=0)
    assert [str(g(n).item()) for n in (0.0, -0.0, 0.0)] == ["0.0", "-0.0", "0.0"]
    g(float("nan"))
    size = g._cache_size()
    g(float("nan"))
    assert g._cache_size() == size


def test_static_arguments_must_hash() -> None:
    f = jit(lambda x, shape: x, static_argnames="shape")
    with pytest.raises(UnhashableStaticArgument, match=r"'shape' of '<lambda>' is of type list"):
        f(X, [1, 2])
    with pytest.raises(ValueError, match="pass a tuple"):
        f(X, shape=[1, 2])
    assert f(X, (1, 2)).shape == (3,)


class _Unsigned:
    """A function without a signature."""

    @property
    def __signature__(self) -> Any:
        raise TypeError("no signature")

    def __call__(self, *args: Any, **named: Any) -> Any:
        return named["x"]


def test_static_names_and_numbers_that_are_not_there() -> None:
    """Wrong numbers and names are refused.

    Differs from JAX: `static_argnums=-1` of a function of `*args` | counts from the end of each
    call; a number that is beyond its arguments is ignored | refused; count from the start.
    """
    with pytest.raises(ValueError, match=r"argument 5 of 'f'"):
        jit(_f, static_argnums=5)
    with pytest.raises(ValueError, match="count from the start"):
        jit(lambda *args: args[0], static_argnums=-1)
    with pytest.raises(ValueError, match=r"\['nosuch'\].*'f'.*'x'"):
        jit(_f, static_argnames="nosuch")
    for name in ("x", "rest"):  # parameters that cannot be passed by name
        with pytest.raises(ValueError, match=rf"\['{name}'\]"):
            jit(lambda x, /, *rest, **named: x, static_argnames=name)
    assert jit(lambda x, /, **named: named["x"], static_argnames="n")(X, x=X, n=3).shape == (3,)
    with pytest.raises(ValueError, match=r"no signature.*donate_argnums"):
        jit(_Unsigned(), donate_argnames="x")
    assert jit(_Unsigned(), static_argnames="x")(x=3) == 3
    with pytest.raises(TypeError, match="integers"):
        jit(_f, static_argnums="x")
    with pytest.raises(ArgumentError, match="static and donated"):
        jit(_f, static_argnums=0, donate_argnums=0)


def _f(x: Any) -> Any:
    return x


_f.__name__ = "f"


def test_static_in_the_middle() -> None:
    f = jit(lambda a, n, b, m, c: add(add(mul(a, n), mul(b, m)), c), static_argnums=(1, 3))
    np.testing.assert_array_equal(f(X, 2, X, 3, X), X * 6)
    g = jit(lambda a, n, b: add(mul(a, n), b), static_argnames="n")
    np.testing.assert_array_equal(g(X, b=X, n=2), X * 3)


class Pair(NamedTuple):
    a: Any
    b: Any


@pytrees.register_dataclass
@dataclasses.dataclass
class State:
    weights: Any
    step: Any


def test_pytrees_in_and_out() -> None:
    @jit
    def f(d: dict[str, Any], p: Pair, s: State, n: None, nested: Any) -> Any:
        return {
            "list": [d["x"], add(d["y"], 1)],
            "pair": Pair(p.b, p.a),
            "state": State(mul(s.weights, 2), add(s.step, 1)),
            "none": n,
            "nested": ((), nested, None),
        }

    out = f({"y": X, "x": X}, Pair(X, 1), State(X, 0), None, ([X], {"k": (X,)}))
    assert type(out) is dict
    np.testing.assert_array_equal(out["list"][1], X + 1)
    assert type(out["pair"]) is Pair
    np.testing.assert_array_equal(out["pair"].b, X)
    assert type(out["state"]) is State
    assert out["state"].step.item() == 1
    assert out["none"] is None
    assert out["nested"][0] == ()
    assert out["nested"][2] is None
    np.testing.assert_array_equal(out["nested"][1][1]["k"][0], X)


def test_no_arguments_and_no_results() -> None:
    assert jit(lambda: None)() is None
    assert jit(lambda: ())() == ()
    assert jit(lambda: 3.5)().item() == 3.5
    assert jit(lambda x: None)(X) is None
    assert jit(lambda x: {})(X) == {}


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: "text", r"'<lambda>' returned 'text' of type builtins\.str"),
        (lambda x: {"a": [x, object()]}, r"at \['a'\]\[1\] <object"),
        (lambda x: (x, Model), r"at \[1\] <class"),
        (lambda x: np.array(["a"]), "<U1"),
        (lambda x: np.ma.masked_array([1]), "masked"),
        (lambda x: {1, 2}, "set"),
    ],
)
def test_results_that_are_no_arrays(function: Any, words: str) -> None:
    with pytest.raises(NotAnArray, match=words):
        jit(function)(X)


def test_arguments_that_are_no_arrays() -> None:
    f = jit(lambda p, q: p)
    with pytest.raises(NotAnArray, match=r"argument p\['w'\]\[0\] of '<lambda>' is 'text'"):
        f({"w": ["text"]}, X)
    with pytest.raises(NotAnArray, match=r"argument q of '<lambda>'.*masked"):
        f(X, q=np.ma.masked_array([1]))
    with pytest.raises(NotAnArray, match=r"argument q of '<lambda>' has the dtype object"):
        f(X, np.array([None]))


class Color(enum.IntEnum):
    BLUE = 3


def test_a_member_of_an_enumeration_is_the_number_it_is() -> None:
    assert int(device_put(Color.BLUE)) == int(device_put([Color.BLUE])[0]) == 3


class Meters(float):
    pass


def test_subclasses_of_python_numbers_are_python_numbers() -> None:
    f = jit(lambda x, y: mul(x, y))
    half = np.ones(2, np.float16)
    for y, value in ((Color.BLUE, 3), (Meters(2.5), 2.5)):
        for out in (f(half, y), mul(half, y), jit(lambda x, y=y: mul(x, y))(half)):
            assert out.dtype == np.float16
            assert out.tolist() == [value] * 2
        np.testing.assert_array_equal(f.lower(half, y).compile()(half, y), [value] * 2)


@pytest.mark.parametrize("how", ["eager", "argument", "literal"])
def test_python_integers_beyond_the_default_dtype(how: str) -> None:
    def plus(x: Any, n: int) -> Any:
        if how == "eager":
            return device_put(x) + n
        return jit(lambda x, n: x + n)(x, n) if how == "argument" else jit(lambda x: x + n)(x)

    with pytest.raises(OverflowError, match=r"int32.*astype"):
        plus(np.int32(1), 2**40)
    if how == "argument":  # the function is traced for every integer of 64 bits
        with pytest.raises(OverflowError, match=r"uint32.*pass the integer as an array"):
            plus(np.uint32(1), 3_000_000_000)
    else:
        assert plus(np.uint32(1), 3_000_000_000).item() == 3_000_000_001
    assert plus(np.int64(1), 2**40).item() == 2**40 + 1
    assert plus(np.float32(0), 2**40).item() == 2.0**40
    assert plus(np.uint8(1), -1).item() == 0
    with config.override(enable_x64=True):
        assert plus(np.int64(1), 2**40).item() == 2**40 + 1


def test_a_deleted_array_in_the_closure_or_passed_on() -> None:
    w = device_put(X)
    f = jit(lambda x: add(x, w))
    f(X)
    w.delete()
    for _ in range(2):
        with pytest.raises(DeletedBuffer, match="closure"):
            f(X)
    with pytest.raises(DeletedBuffer, match="deleted"):
        jit(lambda x: mul(x, w))(X)
    for function in (lambda x: x, lambda x: (x, add(x, 1))):
        passed = jit(function)
        passed(device_put(X))
        x = device_put(X)
        x.delete()
        with pytest.raises(DeletedBuffer, match="argument x"):
            passed(x)


def test_a_changed_global_is_not_seen_until_the_cache_is_cleared() -> None:
    box = [1.0]
    f = jit(lambda x: add(x, box[0]))
    np.testing.assert_array_equal(f(X), X + 1)
    box[0] = 5.0
    np.testing.assert_array_equal(f(X), X + 1)
    f.clear_cache()
    np.testing.assert_array_equal(f(X), X + 5)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (bool, "truth value"), (int, "Python int"), (float, "Python float"),
        (complex, "Python complex"), (np.asarray, "NumPy array"),
        (operator.index, "index"), (lambda x: x.item(), "item"),
        (lambda x: x.tolist(), "tolist"), (lambda x: range(3)[x], "index"),
        (lambda x: [1] if x else [2], "lax.cond"), (np.from_dlpack, "DLPack"),
        (lambda x: x.device, "device"),
    ],
)  # fmt: skip
def test_data_dependent_python_names_the_argument(ask: Any, words: str) -> None:
    @jit
    def f(params: Any) -> Any:
        ask(params["n"])
        return params["n"]

    with pytest.raises(ConcretizationError, match=words) as caught:
        f({"n": np.int32(1)})
    assert "argument params['n'] of 'f'" in str(caught.value)


def test_computed_values_name_the_arguments_and_the_line() -> None:
    def f(params: Any, y: Any, z: Any) -> Any:
        product = xp.multiply(params["w"], 2) + y
        inner = jit(lambda v: v + product)(z)
        if product[0] > 0:
            return product
        return inner

    line = f.__code__.co_firstlineno + 3
    with pytest.raises(ConcretizationError) as caught:
        jit(f)({"w": X}, X, X)
    text = str(caught.value)
    assert f"computed at {__file__}:{line} from arguments params['w'], y," in text
    assert "while 'f' is traced" in text
    with pytest.raises(ConcretizationError, match=r"from argument z,"):
        jit(lambda z: f"{xp.sum(z):.2f}")(X)


def test_traced_arrays_are_printed_and_copied() -> None:
    @jit
    def f(x: Any) -> Any:
        assert f"{x}" == "Tracer<float32[3]>"
        return copy.deepcopy({"x": x})["x"] + copy.copy(x)

    np.testing.assert_array_equal(f(X), 2 * X)


def test_a_tracer_is_an_array_to_isinstance() -> None:
    seen = []
    jit(lambda x: seen.append((isinstance(x, Array), x.shape, x.dtype, x.ndim, x.size, len(x))))(X)
    assert seen == [(True, (3,), np.float32, 1, 3, 3)]
