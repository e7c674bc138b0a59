"""Every function over every dtype, compared with jax.numpy: accepted dtypes and result dtypes.

One trace on each side contains all the calls, so that a grid of thousands costs seconds.

Same as JAX: result dtypes of array functions are those of `jax.numpy`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import pytest

import plugrt
import plugrt.array_api as xp
from plugrt import config
from plugrt.errors import DtypeError, PlugrtError
from support.jax_oracle import jax
from support.numpy_oracle import COMPLEX, FLOATS, INTEGERS, dtype_of

jnp = jax.numpy

DTYPES = [
    "bool", "int4", "uint4", *INTEGERS, "float8_e4m3fn", "float8_e5m2", *FLOATS, *COMPLEX,
]  # fmt: skip
SCALARS = [True, 2, 1.5, 0.5j]

UNARY = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_invert", "ceil", "conj",
    "cos", "cosh", "exp", "expm1", "floor", "imag", "isfinite", "isinf", "isnan", "log", "log10",
    "log1p", "log2", "logical_not", "negative", "positive", "real", "reciprocal", "round", "sign",
    "signbit", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
]  # fmt: skip
OF_ONE = [
    *UNARY, "all", "any", "argmax", "argmin", "argsort", "count_nonzero", "cumulative_prod",
    "cumulative_sum", "diff", "flip", "max", "mean", "median", "min", "prod", "ravel", "sort",
    "std", "sum", "tril", "var",
]  # fmt: skip
BINARY = [
    "add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "copysign", "divide", "equal", "floor_divide", "greater", "greater_equal",
    "hypot", "less", "less_equal", "logaddexp", "logical_and", "logical_or", "logical_xor",
    "maximum", "minimum", "multiply", "nextafter", "not_equal", "pow", "remainder", "subtract",
]  # fmt: skip
OF_TWO = [*BINARY, "dot", "matmul", "outer", "searchsorted", "tensordot", "vecdot"]

Call: TypeAlias = tuple[str, tuple[Any, ...]]
"""A function and its arguments: names of dtypes, or Python scalars."""

Deviation: TypeAlias = tuple[Callable[[str, list[str], str], bool], str]
"""A predicate of a function, kinds of arguments and JAX's outcome; why plugrt differs there."""


def integers_of_4_bits(function: str, kinds: list[str], said: str) -> bool:
    return said == "refused" and any(k in ("int4", "uint4") for k in kinds)


def mixes_uint32(function: str, kinds: list[str], said: str) -> bool:
    signed = {"int8", "int16", "int32"}
    return "uint32" in kinds and bool(signed & set(kinds)) and config.enable_x64 is None


DEVIATIONS: list[Deviation] = [
    (integers_of_4_bits, "JAX's abs, sum, prod, cumulative_sum and pow fail inside for 4 bits"),
    (mixes_uint32, "int64, as the standard has it: JAX has no 64-bit dtypes without x64"),
    (lambda f, k, _: f == "searchsorted", "positions have the default integer dtype, as argmax's"),
    (lambda f, k, _: f == "cumulative_prod", "widened as prod is, by the standard; JAX's is not"),
    (lambda f, k, said: f == "cumulative_sum" and said == "refused", "0-d, as NumPy has it"),
    (lambda f, k, _: f == "logaddexp" and has_complex(k), "real dtypes, by the standard"),
    (lambda f, k, said: f in ("signbit", "copysign") and said == "refused" and has_8_bit_floats(k),
     "jax.numpy.signbit lacks 8 bits"),
    (lambda f, k, _: f == "pow" and k[0] == "bool" and k[1:] == ["int"],
     "int32 in JAX even with x64, where bool beside a Python integer is int64 elsewhere"),
    (lambda f, k, _: f in ("argmax", "argmin") and has_complex(k),
     "JAX takes complex arrays and fails when it compiles"),
]  # fmt: skip
"""All differences, with reasons. Any other is a failure."""


def has_complex(kinds: Sequence[str]) -> bool:
    return any(k.startswith("complex") for k in kinds)


def has_8_bit_floats(kinds: Sequence[str]) -> bool:
    return any(k.startswith("float8") for k in kinds)


def names_of(arguments: Sequence[Any]) -> list[str]:
    return [a if isinstance(a, str) else type(a).__name__ for a in arguments]


def may_differ(call: Call, said: str) -> bool:
    return any(differs(call[0], names_of(call[1]), said) for differs, _ in DEVIATIONS)


def data(dtype: str, second: bool = False) -> Any:
    return np.array([2, 1, 1] if second else [0, 1, 3]).astype(dtype_of(dtype))


def outcomes(
    namespace: Any, trace: Callable[..., Any], calls: Sequence[Call], asarray: Any, wrong: Any
) -> list[str]:
    """Returns the dtype of each call's result, or that the call was refused."""
    found: list[str] = []
    slots = sorted({(a, i) for _, args in calls for i, a in enumerate(args) if isinstance(a, str)})

    def body(*arrays: Any) -> int:
        given = dict(zip(slots, arrays, strict=True))
        found.clear()
        for name, args in calls:
            passed = [given[a, i] if isinstance(a, str) else a for i, a in enumerate(args)]
            try:
                result = getattr(namespace, name)(*passed)
            except wrong:
                found.append("refused")
            else:
                found.append(np.dtype(result.dtype).name)
        return 0

    trace(body, [asarray(data(dtype, i == 1)) for dtype, i in slots])
    return found


def compare_with_jax(calls: Sequence[Call], wide: bool) -> list[tuple[Call, str, str]]:
    with jax.enable_x64(wide):
        expected = outcomes(
            jnp, lambda f, xs: jax.eval_shape(f, *xs), calls, jnp.asarray,
            (TypeError, ValueError, NotImplementedError),
        )  # fmt: skip
    with config.override(enable_x64=wide or None):
        found = outcomes(xp, lambda f, xs: plugrt.jit(f).lower(*xs), calls, xp.asarray, PlugrtError)
        return [
            (call, e, f)
            for call, e, f in zip(calls, expected, found, strict=True)
            if e != f and not may_differ(call, e)
        ]


def grid(wide: bool) -> list[str]:
    return [d for d in DTYPES if wide or dtype_of(d).itemsize < 8 or d == "complex64"]


@pytest.mark.parametrize("wide", [True, False], ids=["x64", "unset"])
def test_functions_of_one_array(wide: bool) -> None:
    calls: list[Call] = [(f, (d,)) for f in OF_ONE for d in grid(wide)]
    calls += [(f, (s,)) for f in OF_ONE for s in SCALARS if f not in ("diff", "flip", "tril")]
    assert compare_with_jax([c for c in calls if not_sorting_0_d(c)], wide) == []


def not_sorting_0_d(call: Call) -> bool:
    return call[0] not in ("sort", "argsort") or isinstance(call[1][0], str)


@pytest.mark.parametrize("wide", [True, False], ids=["x64", "unset"])
def test_functions_of_two_arrays(wide: bool) -> None:
    draw = random.Random(6)
    operands = [*grid(wide), *SCALARS]
    pairs = [p for p in product(operands, operands) if any(isinstance(a, str) for a in p)]
    calls: list[Call] = [("add", p) for p in pairs]
    for f in OF_TWO:
        calls += [(f, (d, d)) for d in grid(wide)]
        some = draw.sample(pairs, 25)
        calls += [(f, p) for p in some if f in BINARY or all(isinstance(a, str) for a in p)]
        calls += [(f, p) for p in product(SCALARS, SCALARS) if f in BINARY]
    assert compare_with_jax(calls, wide) == []


def test_each_public_function_is_compared_or_takes_no_part() -> None:
    functions = {n for n in xp.__all__ if hasattr(getattr(xp, n), "_body")}
    others = {  # the result's dtype is an argument or an argument's; tested elsewhere
        "broadcast_arrays", "broadcast_to", "clip", "concat", "diag", "einsum", "expand_dims",
        "isclose", "matrix_transpose", "meshgrid", "moveaxis", "pad", "permute_dims", "repeat",
        "reshape", "roll", "squeeze", "stack", "swapaxes", "take", "take_along_axis", "tile",
        "transpose", "triu", "unstack", "where",
    }  # fmt: skip
    functions.add("pow")  # checks its exponent before the operation
    assert functions - others == {*OF_ONE, *OF_TWO}


def test_values_of_what_integers_and_bool_become() -> None:
    lifted = ["bool", "int16", "uint64"]
    calls: list[Call] = [(f, (d,)) for f in OF_ONE for d in lifted]
    calls += [(f, (a, b)) for f in OF_TWO for a, b in [("bool", "bool"), ("int16", "float32")]]
    with jax.enable_x64(True):
        taken = outcomes(
            jnp, lambda f, xs: jax.eval_shape(f, *xs), calls, jnp.asarray,
            (TypeError, ValueError, NotImplementedError),
        )  # fmt: skip
    calls = [c for c, said in zip(calls, taken, strict=True) if said != "refused"]

    def every(namespace: Any, asarray: Any) -> Callable[[], list[Any]]:
        return lambda: [
            getattr(namespace, f)(*[asarray(data(a, i == 1)) for i, a in enumerate(args)])
            for f, args in calls
        ]

    with jax.enable_x64(True):
        expected = jax.jit(every(jnp, jnp.asarray))()
    with config.override(enable_x64=True):
        found = plugrt.jit(every(xp, xp.asarray))()
    for call, f, e in zip(calls, found, expected, strict=True):
        np.testing.assert_allclose(
            np.asarray(f).astype("f8"), np.asarray(e).astype("f8"), rtol=1e-5, err_msg=str(call)
        )


@pytest.mark.parametrize("name", ["max", "min", "sort", "argsort", "less", "maximum", "minimum"])
def test_complex_numbers_are_ordered_by_their_parts(name: str) -> None:
    draw = np.random.default_rng(0)
    numbers = (draw.integers(-2, 3, (2, 40)) + 1j * draw.integers(-2, 3, (2, 40))).astype("c8")
    given = numbers if name in ("less", "maximum", "minimum") else numbers[:1]
    found, expected = (getattr(ns, name)(*given) for ns in (xp, jnp))
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def test_8_bit_floats_promote_only_with_integers_and_scalars() -> None:
    x = xp.asarray(np.array([1, 2], ml_dtypes.float8_e4m3fn))
    assert (x * 2.0).dtype == x.dtype
    assert (x + xp.asarray([1, 2], dtype=xp.int8)).dtype == x.dtype
    for other in (xp.float32, xp.bfloat16, xp.complex64, xp.float8_e5m2):
        with pytest.raises(DtypeError, match="no implicit promotion"):
            x + xp.ones(2, dtype=other)


def test_nan_is_the_greatest_complex_number() -> None:
    x = xp.asarray(np.array([complex(1, np.nan), 2, complex(np.nan, 0), 1 + 3j], "c8"))
    placed = np.asarray(xp.sort(x))
    np.testing.assert_array_equal(placed.real, [1, 1, 2, np.nan])
    np.testing.assert_array_equal(placed.imag, [3, np.nan, 0, 0])
    assert np.isnan(complex(xp.max(x)).real) or np.isnan(complex(xp.max(x)).imag)
    assert xp.searchsorted(xp.sort(x), xp.asarray(np.array([1 + 3j, 3], "c8"))).tolist() == [0, 3]
