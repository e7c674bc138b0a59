"""`CASES`: StableHLO operations, each with its NumPy function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plugrt_sdk.conformance.expect import Array

FLOATS = ("float32", "bfloat16", "float16", "float64")
SIGNED = ("int32", "int8", "int64", "int16")
INTEGERS = (*SIGNED, "uint8", "uint32", "uint16", "uint64")
NUMBERS = (*FLOATS, *INTEGERS)
BITS = ("bool", *INTEGERS)
COMPLEX = ("complex64", "complex128")

MLIR_NAMES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int8": "i8",
    "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "ui8", "uint16": "ui16",
    "uint32": "ui32", "uint64": "ui64", "bool": "i1", "complex64": "complex<f32>",
    "complex128": "complex<f64>",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """An elementwise operation of the specification.

    ``numpy`` computes the result: of floats in float64 (complex128), rounded once to the dtype.
    ``domain`` bounds the values of floats. ``ulps`` is the allowed error in units in the last
    place: 0 for operations that IEEE 754 or the specification defines exactly.
    """

    name: str
    numpy: Callable[..., Any]
    dtypes: Sequence[str]
    operands: int = 1
    ulps: int = 0
    domain: tuple[float, float] = (-4.0, 4.0)
    complex_domain: tuple[float, float] | None = None
    """The bounds of the parts of complex numbers, if they differ: away from poles."""
    wide_ulps: int = 0
    """``ulps`` of float64 and complex128, if larger: XLA's error is up to 126."""
    result: str = ""
    """The result's dtype, if it differs from the operands'."""
    attributes: str = ""
    avoid_zero: Sequence[int] = ()
    """The operands that must not be zero."""


def _case(name: str, function: Callable[..., Any], dtypes: Sequence[str], **rest: Any) -> Case:
    return Case(name, function, dtypes, **rest)


def _quotient(a: Array, b: Array) -> Any:
    """Integers are divided towards zero."""
    if a.dtype.kind == "i":
        sign = np.where((a < 0) ^ (b < 0), -1, 1).astype(a.dtype)
        return np.abs(a) // np.abs(b) * sign
    return a // b if a.dtype.kind == "u" else a / b


def _round_afz(x: Array) -> Any:
    """Halves are rounded away from zero."""
    return np.trunc(x + np.copysign(0.5, x))


def _logistic(x: Array) -> Any:
    return 1 / (1 + np.exp(-x))


UNARY: tuple[Case, ...] = (
    _case("abs", np.abs, (*FLOATS, *SIGNED)),
    _case("cbrt", np.cbrt, FLOATS, ulps=8),
    _case("ceil", np.ceil, FLOATS),
    _case("cosine", np.cos, (*FLOATS, *COMPLEX), ulps=8),
    _case("exponential", np.exp, (*FLOATS, *COMPLEX), ulps=8),
    _case("exponential_minus_one", np.expm1, (*FLOATS, *COMPLEX), ulps=8),
    _case("floor", np.floor, FLOATS),
    _case("log", np.log, (*FLOATS, *COMPLEX), ulps=8, wide_ulps=64, domain=(0.01, 8)),
    _case("log_plus_one", np.log1p, (*FLOATS, *COMPLEX), ulps=8, wide_ulps=512, domain=(-0.9, 8)),
    _case("logistic", _logistic, (*FLOATS, *COMPLEX), ulps=8, complex_domain=(-2, 2)),
    _case("negate", np.negative, (*FLOATS, *SIGNED, *COMPLEX)),
    _case("not", np.invert, BITS),
    _case("round_nearest_afz", _round_afz, FLOATS),
    _case("round_nearest_even", np.rint, FLOATS),
    _case("rsqrt", lambda x: 1 / np.sqrt(x), (*FLOATS, *COMPLEX), ulps=8, domain=(0.01, 8)),
    _case("sign", np.sign, (*FLOATS, *SIGNED)),
    _case("sine", np.sin, (*FLOATS, *COMPLEX), ulps=8),
    _case("sqrt", np.sqrt, (*FLOATS, *COMPLEX), ulps=2, domain=(0.0, 8)),
    _case("tan", np.tan, (*FLOATS, *COMPLEX), ulps=16, domain=(-1.2, 1.2)),
    _case("tanh", np.tanh, (*FLOATS, *COMPLEX), ulps=16, complex_domain=(-1.2, 1.2)),
    _case("is_finite", np.isfinite, FLOATS, result="bool"),
)

BINARY: tuple[Case, ...] = (
    _case("add", np.add, (*NUMBERS, "bool", *COMPLEX), operands=2),
    _case("and", np.bitwise_and, BITS, operands=2),
    _case("atan2", np.arctan2, FLOATS, operands=2, ulps=8),
    _case("divide", _quotient, NUMBERS, operands=2, ulps=1, avoid_zero=(1,)),
    _case("maximum", np.maximum, (*NUMBERS, "bool"), operands=2),
    _case("minimum", np.minimum, (*NUMBERS, "bool"), operands=2),
    _case("multiply", np.multiply, (*NUMBERS, "bool"), operands=2),
    _case("or", np.bitwise_or, BITS, operands=2),
    _case("power", np.power, FLOATS, operands=2, ulps=32, domain=(0.1, 3)),
    _case("remainder", np.fmod, NUMBERS, operands=2, avoid_zero=(1,)),
    _case("subtract", np.subtract, (*NUMBERS, *COMPLEX), operands=2),
    _case("xor", np.bitwise_xor, BITS, operands=2),
    *(
        _case("compare", function, dtypes, operands=2, result="bool", attributes=direction)
        for direction, function, dtypes in (
            ("EQ", np.equal, (*NUMBERS, "bool", *COMPLEX)),
            ("NE", np.not_equal, (*NUMBERS, "bool", *COMPLEX)),
            ("LT", np.less, (*NUMBERS, "bool")), ("LE", np.less_equal, (*NUMBERS, "bool")),
            ("GT", np.greater, (*NUMBERS, "bool")), ("GE", np.greater_equal, (*NUMBERS, "bool")),
        )
    ),
)  # fmt: skip

CASES: tuple[Case, ...] = (*UNARY, *BINARY)
MATRIX = (5, 13)
"""The shape of two dimensions in the tests of operations."""
SHAPES: tuple[tuple[int, ...], ...] = (
    (65,), MATRIX, (3, 3, 7), (3, 2, 2, 5), (2, 3, 1, 2, 5), (3, 1, 3, 1, 7, 1),
    (1, 3, 1, 3, 1, 7, 1), (1, 2, 1, 3, 1, 2, 1, 5),
)  # fmt: skip
"""A shape of each rank from 1 to 8. The number of elements is no multiple of a vector's width."""
RIGHT_OF_TWO = f"dimensions, and right of {len(MATRIX)}"
"""The finding for an operation that is refused in a rank, but right on matrices."""


def case_id(case: Case) -> str:
    """The part of a check's id that names the case."""
    return f"{case.name}.{case.attributes.lower()}" if case.attributes else case.name


def ulps_of(case: Case, dtype: str) -> int:
    """Returns the allowed error of a dtype's result, in units in the last place."""
    return max(case.ulps, case.wide_ulps if dtype in ("float64", "complex128") else 0)


def shape_of(case: Case, dtype: str) -> tuple[int, ...]:
    """Returns the shape of an operation's test for a dtype.

    It has two dimensions for the operation's first dtype, and one to eight in turn for the others,
    so that each dtype is tested in each rank.
    """
    place = list(case.dtypes).index(dtype)
    return SHAPES[(CASES.index(case) + place) % len(SHAPES)] if place else MATRIX


def program_of(case: Case, dtype: str, shape: tuple[int, ...]) -> str:
    """Returns the StableHLO program that applies an operation to its arguments."""
    size = "".join(f"{n}x" for n in shape)
    taken = f"tensor<{size}{MLIR_NAMES[dtype]}>"
    given = f"tensor<{size}{MLIR_NAMES[case.result or dtype]}>"
    names = [f"%a{i}" for i in range(case.operands)]
    parameters = ", ".join(f"{name}: {taken}" for name in names)
    kinds = ", ".join([taken] * case.operands)
    direction = (
        f" {{comparison_direction = #stablehlo<comparison_direction {case.attributes}>}}"
        if case.attributes
        else ""
    )
    return (
        f"func.func public @main({parameters}) -> {given} {{\n"
        f'  %0 = "stablehlo.{case.name}"({", ".join(names)}){direction} : ({kinds}) -> {given}\n'
        f"  return %0 : {given}\n}}"
    )


def arguments_of(
    case: Case, dtype: str, shape: tuple[int, ...], generator: np.random.Generator
) -> list[Array]:
    """Returns arguments in the case's domain; some elements of two operands are equal."""
    found = [_values(case, dtype, shape, generator) for _ in range(case.operands)]
    if case.operands == 2:
        found[1].flat[::4] = found[0].flat[::4]
    for i in case.avoid_zero:
        found[i][found[i] == 0] = 1
    return found


def _values(
    case: Case, dtype: str, shape: tuple[int, ...], generator: np.random.Generator
) -> Array:
    kind = np.dtype(dtype)
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if kind.kind in "iu":
        least = 0 if kind.kind == "u" else -9
        return generator.integers(least, 10, shape).astype(kind)
    low, high = (kind.kind == "c" and case.complex_domain) or case.domain
    found = generator.uniform(low, high, shape)
    if kind.kind == "c":
        return (found + 1j * generator.uniform(low, high, shape)).astype(kind)
    return found.astype(kind)


def expected_of(case: Case, arguments: Sequence[Array]) -> Array:
    """Returns NumPy's result, computed in float64 for floats, and rounded once."""
    dtype = arguments[0].dtype
    wide = list(arguments)
    if dtype.kind not in "iub":
        wide = [a.astype(np.complex128 if dtype.kind == "c" else np.float64) for a in arguments]
    with np.errstate(all="ignore"):
        found = np.asarray(case.numpy(*wide))
    return found.astype(np.dtype(case.result or dtype.name))
