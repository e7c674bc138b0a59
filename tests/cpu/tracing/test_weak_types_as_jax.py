"""Every public function with weak operands: dtype and weak type as in JAX, eager and traced.

One trace of each library contains thousands of calls (`weak_calls.py`), which need only seconds.

Same as JAX: weak types: a Python number does not widen an array.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import pytest

import plugrt
from cpu.tracing.weak_calls import OF_ONE, OF_TWO, Call, Namespaces
from plugrt import array_api as xp
from plugrt import config, lax, tree
from plugrt import random as plugrt_random
from plugrt.errors import PlugrtError
from support.apart import runs_apart
from support.effort import EFFORT, seeds
from support.jax_oracle import jax

PYTHON = {"bool": True, "int": 2, "float": 0.5, "complex": 1 + 0.5j}
"""Scalars that are arguments, become weak vectors ("weak int"), or are captured ("literal int")."""
LITERALS = {"NumPy float32": np.float32(0.5), "NumPy int8": np.int8(2)}
ARRAYS = {
    "bool[]": np.bool_, "int8[]": np.int8, "uint8[]": np.uint8, "int32[]": np.int32,
    "uint32[]": np.uint32, "float16[]": np.float16, "bfloat16[]": ml_dtypes.bfloat16,
    "float32[]": np.float32, "complex64[]": np.complex64,
}  # fmt: skip
WIDE = {
    "int64[]": np.int64, "uint64[]": np.uint64, "float64[]": np.float64,
    "complex128[]": np.complex128,
}  # fmt: skip

One: TypeAlias = tuple[str, Call, tuple[str, ...]]
"""The name of a call, the call, and the kinds of its operands."""

AS_IN_0_10 = pytest.mark.skipif(
    not jax.__version__.startswith("0.10."),
    reason="the record is of JAX 0.10; log2 of integers and pmax over no axes are weak in 0.12",
)
DEVIATIONS = {
    "lax.cond": "weak where all branches are; in JAX, as that for False is",
    "lax.switch": "weak where all branches are; in JAX, as the first is",
    "lax.scan": "what is made of a carry that is settled by the body is settled; weak in JAX",
    "lax.fori": "as for scan; and bounds that are NumPy scalars give the index their dtype",
    "lax.while": "as for scan",
    "lax.reduce_window": "weak where operand and initial value are; in JAX for known sums alone",
    "at.power": "weak as x; JAX's powers of integers are not",
    "op.pow": "NumPy's scalars are arrays as exponents, too, so that eager and traced are alike",
    "xp.pow": "as op.pow",
    "x**": "with x64 bool to a Python integer is int64, as beside one elsewhere; int32 in JAX",
    "xp.cumulative_prod": "widened as prod is, by the standard",
    "m.cum": "widened as sum is, as in NumPy",
    "xp.searchsorted": "positions have the default integer dtype, as argmax's",
}
"""Calls that may differ if both libraries accept them, by how their names begin; the reasons."""


def kinds(wide: bool) -> list[str]:
    weak = [f"weak {k}" for k in PYTHON if k != "bool"]
    literals = [f"literal {k}" for k in PYTHON]
    return [*PYTHON, *weak, *literals, *LITERALS, *ARRAYS, *(WIDE if wide else ())]


def some_calls(wide: bool, seed: int, pairs: int) -> list[One]:
    draw = random.Random(seed)
    calls: list[One] = [(n, f, (k,)) for n, f in OF_ONE.items() for k in kinds(wide)]
    both = list(product(kinds(wide), repeat=2))
    for name, call in OF_TWO.items():
        calls += [(name, call, p) for p in draw.sample(both, pairs)]
        calls += [
            (name, call, (k, k)) for k in ("int", "weak float", "bool[]", "float32[]", "int32[]")
        ]
    return calls


def data(kind: str) -> Any:
    return np.array([0, 1, 2]).astype({**ARRAYS, **WIDE}[kind])


def operand(n: Namespaces, kind: str, given: dict[str, Any]) -> Any:
    if kind.startswith("weak "):
        return n.xp.broadcast_to(given[kind.removeprefix("weak ")], (3,))
    if kind.startswith("literal "):
        return PYTHON[kind.removeprefix("literal ")]
    return LITERALS[kind] if kind in LITERALS else given[kind]


Kind: TypeAlias = tuple[str, bool, tuple[int, ...]]
"""The name of the dtype, whether it is weak, the shape."""


def dtype_kind(x: Any, wide: bool) -> Kind:
    if type(x) in (bool, int, float, complex):
        bits = {bool: "", int: "32", float: "32", complex: "64"}[type(x)]
        return type(x).__name__ + (str(2 * int(bits)) if wide and bits else bits), x is not True, ()
    if isinstance(x, np.dtype):
        return x.name, False, ()
    weak = getattr(x, "weak_type", getattr(x, "weak", None))
    if weak is None:
        weak = type(x) is plugrt.Array and x.weak_type
    return np.dtype(x.dtype).name, bool(weak) and x.dtype != bool, tuple(x.shape)


def traced(
    n: Namespaces,
    calls: Sequence[One],
    wide: bool,
    trace: Callable[..., Any],
    leaves: Callable[..., list[Any]],
    refusals: tuple[type[Exception], ...],
) -> list[list[Kind] | None]:
    """Returns the kinds of each call's results within one trace; None if the call is refused."""
    arrays = [*ARRAYS, *(WIDE if wide else ())]
    found: list[list[Kind] | None] = []

    def body(scalars: Any, given: Any, key: Any, true: Any, index: Any) -> int:
        found.clear()
        n.key, n.true, n.index = key, true, index
        named = dict(zip([*PYTHON, *arrays], [*scalars, *given], strict=True))
        operands = {k: operand(n, k, named) for k in kinds(wide)}
        for _, call, of in calls:
            try:
                made = leaves(call(n, *[operands[k] for k in of]))
            except refusals:
                found.append(None)
            else:
                found.append([dtype_kind(x, wide) for x in made])
        return 0

    key = np.uint32([0, 1])
    trace(body, [*PYTHON.values()], [data(k) for k in arrays], key, np.bool_(True), np.int32(1))
    return found


OURS = Namespaces(xp, lax, plugrt_random, plugrt.jit)
THEIRS = Namespaces(jax.numpy, jax.lax, jax.random, jax.jit)
JAX_REFUSALS = (
    TypeError, ValueError, NotImplementedError, OverflowError, AssertionError, AttributeError,
    IndexError,
)  # fmt: skip


@runs_apart("as_jax")
@pytest.mark.long
@AS_IN_0_10
@pytest.mark.parametrize("wide", [False, True], ids=["x64 off", "x64 on"])
def test_traced_calls_give_what_they_give_in_jax(wide: bool) -> None:
    calls = some_calls(wide, seed=7, pairs=8 * EFFORT)
    if EFFORT == 1:  # half of the calls of one operand with x64, the others without
        calls = [c for i, c in enumerate(calls) if len(c[2]) == 2 or i % 2 == wide]
    with jax.enable_x64(wide), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = traced(
            THEIRS, calls, wide, jax.eval_shape, jax.tree.leaves, JAX_REFUSALS
        )  # fmt: skip
    with config.override(enable_x64=wide):
        found = traced(
            OURS, calls, wide, lambda f, *a: plugrt.jit(f).lower(*a), tree.leaves,
            (PlugrtError, TypeError, ValueError),
        )  # fmt: skip
    compared = [
        (name, of, f, e)
        for (name, _, of), f, e in zip(calls, found, expected, strict=True)
        if f is not None and e is not None
    ]
    assert len(compared) > 2000
    assert {*OF_ONE, *OF_TWO} - {name for name, *_ in compared} <= {"xp.linspace ab"}
    wrong = [c for c in compared if c[2] != c[3] and not c[0].startswith(tuple(DEVIATIONS))]
    assert wrong == []


@pytest.mark.parametrize("seed", seeds(3))
def test_eager_and_jitted_calls_give_the_same(seed: int) -> None:
    draw = random.Random(seed)
    every: list[tuple[str, Call, int]] = [(n, f, 1) for n, f in OF_ONE.items()]
    every += [(n, f, 2) for n, f in OF_TWO.items()]
    for _ in range(20):
        wide = draw.choice([None, False, True])
        name, call, count = draw.choice(every)
        of = draw.choices([k for k in kinds(wide is not False) if k[:3] != "lit"], k=count)
        with config.override(enable_x64=wide):
            OURS.key, OURS.true, OURS.index = (
                xp.asarray(x) for x in (np.uint32([0, 1]), np.bool_(True), np.int32(1))
            )
            given = {k: xp.asarray(data(k)) for k in of if k.endswith("[]")} | PYTHON
            args = [operand(OURS, k, given) for k in of]
            eager = outcome(lambda *a: call(OURS, *a), args, wide)  # noqa: B023
            closed_over = outcome(plugrt.jit(lambda: call(OURS, *args)), [], wide)  # noqa: B023
            passed = outcome(plugrt.jit(lambda *a: call(OURS, *a)), args, wide)  # noqa: B023
        assert eager[0] == closed_over[0] == passed[0], (name, of, wide)
        for found in (closed_over, passed):
            for x, y in zip(eager[1], found[1], strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-2, atol=1e-6, err_msg=f"{name} of {of}")


def outcome(
    call: Callable[..., Any], args: Sequence[Any], wide: bool | None
) -> tuple[Any, list[Any]]:
    """Returns the kinds and the values of a call's results, or that it is refused."""
    try:
        made = tree.leaves(call(*args))
    except (PlugrtError, TypeError, ValueError):
        return "refused", []
    kinds_made = [dtype_kind(x, wide is True) for x in made]
    return kinds_made, [np.asarray(x).astype(complex) for x in made]


def test_weakness_is_of_the_result_and_not_of_what_went_in() -> None:
    kept: list[bool] = []

    def f(x: Any, i: Any) -> Any:
        taken = xp.where(True, x, x), lax.optimization_barrier((x, 1.5)), x.at[i].get()
        kept.append(x.weak)
        return taken[2] * np.int8(1)

    found = plugrt.jit(f)(np.int8([1, 2]), 0)
    assert (kept, found.dtype) == ([False], np.int8)


COLLECTIVES: dict[str, Callable[[Any, Any], Any]] = {
    f"{name} over {axis!r}": (lambda lax, x, name=name, axis=axis: getattr(lax, name)(x, axis))
    for name in ("psum", "pmean", "pmax", "pmin", "all_gather")
    for axis in ("i", ())
    if not (name in ("psum", "pmean") and axis == ())
} | {
    "psum over none": lambda lax, x: lax.psum(x, ()),
    "pmean over none": lambda lax, x: lax.pmean(x, ()),
    "ppermute": lambda lax, x: lax.ppermute(x, "i", [(0, 0)]),
    "pshuffle": lambda lax, x: lax.pshuffle(x, "i", [0]),
    "all_to_all": lambda lax, x: lax.all_to_all(lax.full((1,), x), "i", 0, 0),
    "pswapaxes": lambda lax, x: lax.pswapaxes(lax.full((1,), x), "i", 0),
    "psum_scatter": lambda lax, x: lax.psum_scatter(lax.full((1,), x), "i"),
    "axis_index": lambda lax, x: lax.axis_index("i") * x,
    "axis_size": lambda lax, x: lax.axis_size("i") * x,
}
VALUES = [True, 2, 0.5, np.int8(3), np.float32(1.5), np.bool_(True)]


@AS_IN_0_10
@pytest.mark.filterwarnings("ignore:64-bit data are narrowed")
@pytest.mark.parametrize("wide", [False, True], ids=["x64 off", "x64 on"])
@pytest.mark.parametrize("passed", [True, False], ids=["passed", "closed over"])
def test_collectives_give_what_they_give_in_jax(passed: bool, wide: bool) -> None:
    def every(lax: Any) -> Callable[..., Any]:
        def body(_: Any, *values: Any) -> Any:
            given = values or VALUES
            return [[f(lax, x) for x in given] for f in COLLECTIVES.values()]

        return body

    lane = np.ones((1, 2), np.float32)
    args = [lane, *(VALUES if passed else [])]
    axes = (0, *[None] * (len(args) - 1))
    with jax.enable_x64(wide):
        mapped = jax.pmap(every(jax.lax), "i", in_axes=axes, devices=jax.devices()[:1])
        expected = [dtype_kind(x, wide) for x in jax.tree.leaves(jax.eval_shape(mapped, *args))]
    with config.override(enable_x64=wide):
        ours = plugrt.pmap(every(lax), "i", in_axes=axes, devices=plugrt.devices()[:1])
        found = [dtype_kind(x, wide) for x in tree.leaves(ours(*args))]
    names = [(name, x) for name in COLLECTIVES for x in VALUES]
    for (name, x), f, e in zip(names, found, expected, strict=True):
        # JAX's pmean divides a NumPy scalar by a Python integer, with NumPy's result.
        numpys = not passed and name.startswith("pmean") and isinstance(x, np.generic)
        # XLA refuses JAX's psum_scatter of booleans; plugrt's counts them, like psum.
        counts = name == "psum_scatter" and isinstance(x, bool | np.bool_) and f[0] == "int32"
        assert f == e or numpys or counts, (name, x)
