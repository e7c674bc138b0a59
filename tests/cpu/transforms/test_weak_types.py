"""Python scalars keep their weakness through functions, eager and jitted alike, as in JAX.

Same as JAX: weak types: a Python number does not widen an array.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from plugrt import array_api as xp
from plugrt import config, device_put, jit, lax, pmap, tree
from support.effort import WHOLE, seeds, some_of
from support.jax_oracle import jax

jnp: Any = jax.numpy
F32, F16, I16, I8 = (np.ones(3, d) for d in ("float32", "float16", "int16", "int8"))

# The x64 mode, a function, its arguments, and the expected dtype.
ROWS: list[tuple[bool | None, Callable[..., Any], tuple[Any, ...], str]] = [
    (True, lambda x, lr: x * lr**2, (F32, 0.1), "float32"),
    (True, lambda x, b: x / (1 - b), (F32, 0.9), "float32"),
    (None, lambda x, y: -x + y, (1.0, F16), "float16"),
    (None, lambda x, y: x + abs(y), (I16, 1), "int16"),
    (True, lambda x: xp.sin(1.0) * x, (F32,), "float32"),
    (True, lambda x: x * xp.sqrt(2.0), (F32,), "float32"),
    (None, lambda x, y: (x * 2) * y, (1.5, F16), "float16"),
    (None, lambda x, y: lax.cond(True, lambda: x, lambda: 2.0) * y, (1.5, F16), "float16"),
    (None, lambda x, y: xp.where(x > 0, x, 1.0) * y, (1.5, F16), "float16"),
    (None, lambda x, y: xp.broadcast_to(xp.asarray(x), (3,)) + y, (2, I8), "int8"),
    (None, lambda x, y: xp.sum(xp.broadcast_to(x, (3,))) + y, (1.5, F16), "float32"),
    (None, lambda x, y: xp.astype(xp.asarray(x), xp.float32) + y, (1.5, F16), "float32"),
]


@pytest.mark.parametrize("row", range(len(ROWS)))
def test_jit_gives_the_dtype_that_eager_gives(row: int) -> None:
    x64, function, args, expected = ROWS[row]
    with config.override(enable_x64=x64):
        eager = [xp.asarray(x) if isinstance(x, np.ndarray) else x for x in args]
        assert np.asarray(function(*eager)).dtype == expected
        assert jit(function)(*args).dtype == expected
        assert jit(lambda *a: jit(function)(*a))(*args).dtype == expected


def test_booleans_are_never_weak() -> None:
    traced = []

    def f(x: Any) -> Any:
        traced.append(x)
        return x, jit(lambda v: (v, ~v))(x), True, lax.cond(True, lambda: x, lambda: False)

    booleans = (True, np.bool_(True), xp.asarray(True), device_put(True), jit(lambda: True)())
    call = jit(f)
    for given in booleans:
        assert [x.weak_type for x in tree.leaves(call(given))] == [False] * 5
        assert not xp.asarray(given).weak_type
    assert len(traced) == 1
    assert not pmap(lambda x, _: x, in_axes=(None, 0))(True, np.ones(1)).weak_type


Call = Callable[[Any, Any, Any, Any], Any]
"""A function of (namespace, lax, a weak vector, a float16 vector) that returns arrays."""

CALLS: dict[str, Call] = {
    "full": lambda ns, lax, v, s: ns.full((3,), 2.0),
    "full, weak array": lambda ns, lax, v, s: ns.full((3,), v[0]),
    "full, dtype": lambda ns, lax, v, s: ns.full((3,), 2.0, dtype=np.float32),
    "full, array": lambda ns, lax, v, s: ns.full((3,), s[0]),
    "zeros": lambda ns, lax, v, s: ns.zeros(3),
    "zeros_like": lambda ns, lax, v, s: ns.zeros_like(v),
    "ones_like": lambda ns, lax, v, s: (ns.ones_like(v), ns.ones_like(2.0), ns.ones_like(s)),
    "empty_like": lambda ns, lax, v, s: ns.empty_like(v),
    "zeros_like, dtype": lambda ns, lax, v, s: ns.zeros_like(v, dtype=np.float32),
    "full_like": lambda ns, lax, v, s: (ns.full_like(v, 2), ns.full_like(s, 2.0)),
    "full_like, array": lambda ns, lax, v, s: ns.full_like(v, s[0]),
    "lax.full_like": lambda ns, lax, v, s: (lax.full_like(v, 2), lax.full_like(s, 2.0)),
    "lax.full": lambda ns, lax, v, s: (lax.full((3,), 2.0), lax.full((3,), 2, np.float32)),
    "asarray": lambda ns, lax, v, s: (ns.asarray(v), ns.asarray(2.0)),
    "asarray, dtype": lambda ns, lax, v, s: ns.asarray(v, dtype=np.float32),
    "asarray, sequence": lambda ns, lax, v, s: (ns.asarray([v, v]), ns.asarray([1.0, 2.0])),
    "arange": lambda ns, lax, v, s: ns.arange(3.0),
    "linspace": lambda ns, lax, v, s: ns.linspace(0.0, 2.0, 3),
    "where": lambda ns, lax, v, s: (ns.where(v > 1, v, 1.0), ns.where(v > 1, v, s)),
    "clip": lambda ns, lax, v, s: (ns.clip(v, 0, 1), ns.clip(s, 0.0, 1.0), ns.clip(v, s, s)),
    "broadcast_arrays": lambda ns, lax, v, s: tuple(ns.broadcast_arrays(v, s)),
    "meshgrid": lambda ns, lax, v, s: tuple(ns.meshgrid(v, s)),
    "stack": lambda ns, lax, v, s: (ns.stack([v, v]), ns.stack([v, s])),
    "concat": lambda ns, lax, v, s: (ns.concat([v, v]), ns.concat([v, s])),
    "argsort": lambda ns, lax, v, s: (ns.argsort(v), ns.sort(v)),
    "reductions": lambda ns, lax, v, s: (ns.sum(v), ns.max(v), ns.mean(v), ns.prod(v)),
    "shapes": lambda ns, lax, v, s: (ns.reshape(v, (3, 1)), ns.flip(v), ns.roll(v, 1), v[1:]),
    "take": lambda ns, lax, v, s: ns.take(v, np.int32([0, 2])),
    "elementwise": lambda ns, lax, v, s: (ns.sin(v), ns.exp(v), abs(v), ns.round(v), ns.sign(v)),
    "hypot": lambda ns, lax, v, s: ns.hypot(v, s),
    "einsum": lambda ns, lax, v, s: (ns.einsum("i,i->", v, v), ns.einsum("i,i->i", v, s)),
    "matmul": lambda ns, lax, v, s: ns.matmul(v, s),
    "optimization_barrier": lambda ns, lax, v, s: lax.optimization_barrier((v, s)),
    "scan": lambda ns, lax, v, s: lax.scan(lambda c, x: (c + x, (c * 2, x, 1.0)), 1.0, v),
    "scan, long": lambda ns, lax, v, s: lax.scan(lambda c, x: (c, (x, c)), s[0], v),
    "map": lambda ns, lax, v, s: lax.map(lambda x: (x * 2, 3.0), v),
    "fori_loop": lambda ns, lax, v, s: lax.fori_loop(0, 3, lambda i, c: c * 2.0, v),
    "while_loop": lambda ns, lax, v, s: lax.while_loop(lambda c: c[0] < 9, lambda c: c + 9, v),
    "cond": lambda ns, lax, v, s: lax.cond(v[0] > 1, lambda: v, lambda: v * 2),
    "switch": lambda ns, lax, v, s: lax.switch(0, [lambda x: x, lambda x: x + 1], v),
    "cumsum": lambda ns, lax, v, s: lax.cumsum(v),
    "select": lambda ns, lax, v, s: lax.select(v > 1, v, v),
}


MODES = (True, False, None)
IN_MODES = [(name, x64) for name in CALLS for x64 in MODES]
IN_SOME = [(name, MODES[i % 2]) for i, name in enumerate(CALLS)]
IN_SOME += [(name, None) for name in some_of([*CALLS], 8)]
"""Each call in one of JAX's two x64 modes, and some in plugrt's third mode."""


@pytest.mark.parametrize(("name", "x64"), IN_MODES if WHOLE else IN_SOME)
def test_results_are_weak_where_those_of_jax_are(name: str, x64: bool | None) -> None:
    call = CALLS[name]

    def ours(x: Any, s: Any) -> Any:
        return call(xp, lax, xp.broadcast_to(xp.asarray(x), (3,)), s)

    def theirs(x: Any, s: Any) -> Any:
        return call(jnp, jax.lax, jnp.broadcast_to(x, (3,)), s)

    with config.override(enable_x64=x64):
        jitted = [(x.dtype, x.weak_type) for x in tree.leaves(jit(ours)(1.5, F16))]
        eager = tree.leaves(ours(1.5, xp.asarray(F16)))
        assert [(x.dtype, x.weak_type) for x in eager] == jitted
        for found, (dtype, weak) in zip(eager, jitted, strict=True):
            expected = np.float16 if weak and dtype.kind == "f" else np.result_type(dtype, F16)
            assert (found * F16[0]).dtype == expected or dtype.kind not in "f"
    if x64 is not None:
        with jax.enable_x64(x64):
            leaves = jax.tree.leaves(jax.eval_shape(theirs, 1.5, F16))
            assert jitted == [(x.dtype, x.weak_type) for x in leaves]


BINARY = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "pow"]
UNARY = ["negative", "abs", "sin", "sqrt", "square", "floor"]
DTYPES = ["float16", "bfloat16", "float32", "int8", "int16", "int32", "uint8"]
LITERALS = [2, 0.5, 3, 1.0, 1 + 2j]
SMALL = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4", "int2"]
TARGETS = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
    *(np.dtype(getattr(ml_dtypes, name)) for name in SMALL),
]
"""The dtypes of `astype`."""


@pytest.mark.parametrize("x64", [True, False])
def test_astype_of_a_literal_is_that_of_jax_eager_and_jitted(x64: bool) -> None:
    literals = [True, 3, 300, -1, 2**31 - 1, 1.0, 1 + 2j, 0j, complex(0, -1), np.complex64(1j)]
    literals = some_of([*literals, 2.5, 1e39, 1e-46, float("inf"), float("nan")], 6)

    def convert(ns: Any, literals: Any) -> Any:
        return [ns.astype(x, dtype) for dtype in TARGETS for x in literals]

    with warnings.catch_warnings(), config.override(enable_x64=x64), jax.enable_x64(x64):
        # Conversions warn about lost imaginary parts, overflows and narrowing.
        warnings.simplefilter("ignore")
        closed_over = jax.jit(lambda: convert(jnp, literals))()
        passed = jax.jit(lambda x: convert(jnp, x))(literals)
        for found, expected in [
            (convert(xp, literals), passed),
            (jit(lambda: convert(xp, literals))(), closed_over),
            (jit(lambda x: convert(xp, x))(literals), passed),
        ]:
            assert [x.dtype for x in found] == [x.dtype for x in expected]
            wide = [[np.asarray(x).astype(complex) for x in xs] for xs in (found, expected)]
            np.testing.assert_array_equal(*wide)


def expression(random: np.random.Generator, depth: int, count: int) -> Callable[..., Any]:
    """Returns a random function of (namespace, lax, arguments)."""
    choice = random.random()
    if depth == 0 or choice < 0.15:
        i = int(random.integers(count))
        return lambda ns, lax, args: args[i]
    if choice < 0.25:
        literal = LITERALS[random.integers(len(LITERALS))]
        return lambda ns, lax, args: literal
    if choice < 0.35:
        inner, dtype = expression(random, depth - 1, count), random.choice(TARGETS)
        return lambda ns, lax, args: ns.astype(inner(ns, lax, args), dtype)
    if choice < 0.55:
        name = UNARY[random.integers(len(UNARY))]
        inner = expression(random, depth - 1, count)
        return lambda ns, lax, args: getattr(ns, name)(inner(ns, lax, args))
    left, right = (expression(random, depth - 1, count) for _ in range(2))
    if choice < 0.65:
        return lambda ns, lax, args: (
            lax.cond(True, lambda x: x + 1, lambda x: x, left(ns, lax, args)) * right(ns, lax, args)
        )
    name = BINARY[random.integers(len(BINARY))]
    return lambda ns, lax, args: getattr(ns, name)(left(ns, lax, args), right(ns, lax, args))


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype", "ignore:Casting from complex")
@pytest.mark.parametrize("x64", [True, False, None])
@pytest.mark.parametrize("seed", seeds(3))
def test_eager_is_jit_is_jax(seed: int, x64: bool | None) -> None:
    random = np.random.default_rng(seed)
    dtypes = random.choice(DTYPES, 2)
    host = [np.ones(2, ml_dtypes.bfloat16 if d == "bfloat16" else d) for d in dtypes]
    args = [*host, 3, 0.25]
    for _ in range(3):
        f = expression(random, 3, len(args))
        with config.override(enable_x64=x64):
            arrays = [xp.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
            eager = _dtype(lambda *a: f(xp, lax, a), arrays)  # noqa: B023
            traced = _dtype(jit(lambda *a: f(xp, lax, a)).eval_shape, args)  # noqa: B023
            inner = jit(lambda *a: f(xp, lax, a))  # noqa: B023
            nested = _dtype(jit(lambda *a: inner(*a)).eval_shape, args)  # noqa: B023
        assert traced == nested
        if eager is not None:  # outside of a trace xp refuses Python scalars
            assert eager == traced
        if x64 is not None:
            with jax.enable_x64(x64):
                theirs = jax.jit(lambda *a: f(jnp, jax.lax, a))  # noqa: B023
                expected = _dtype(theirs.eval_shape, args)
            assert traced == expected


def _dtype(function: Callable[..., Any], args: list[Any]) -> str | None:
    """Returns the dtype of the result, or None if the function refuses the arguments."""
    try:
        found = function(*args)
    except (TypeError, ValueError, OverflowError):
        return None
    return np.dtype(found.dtype).name if hasattr(found, "dtype") else None


def test_pmap_keeps_weakness() -> None:
    f = pmap(lambda x, y: -y + x, in_axes=(0, None))
    assert f(F16[:1], 1.0).dtype == np.float16
