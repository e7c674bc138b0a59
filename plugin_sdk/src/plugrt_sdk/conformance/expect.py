"""`Mismatch`, and the comparisons of checks; each error has both values."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.errors import InvalidArgument, PjrtError, PlugrtError, Unimplemented, describe

Array = npt.NDArray[Any]
_SHOWN = 200
_ADDRESS = re.compile(r" at 0x[0-9a-f]+(?=>)")
"""Matches the address in the text of an object, which differs between runs."""


# Process-wide: one check runs at a time and adds to it; `judge` reads and clears it.
WARNINGS: list[str] = []
"""Warnings of a check that passes: mistakes of the caller under another error code."""


class Mismatch(AssertionError):
    """A check's statement is false: ``expected`` is the demand, ``got`` the value found."""

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(f"expected {expected}; got {got}")
        self.expected, self.got = expected, got


def show(value: object) -> str:
    """Formats a value in one short line."""
    text = np.array2string(value, threshold=8) if isinstance(value, np.ndarray) else repr(value)
    text = _ADDRESS.sub("", " ".join(text.split()))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …"


def expect(holds: object, expected: str, got: object) -> None:
    """Raises `Mismatch` unless ``holds``; ``expected`` is a text, ``got`` a value."""
    if not holds:
        raise Mismatch(expected, got if isinstance(got, str) and got else show(got))


def expect_equal(got: object, expected: object, what: str) -> None:
    """Raises `Mismatch` unless two values are equal."""
    expect(got == expected, f"{what} {show(expected)}", got)


def expect_same_bits(got: Array, expected: Array, what: str = "the array") -> None:
    """Raises `Mismatch` unless two arrays have the same shape, dtype and bits."""
    _expect_same_type(got, expected, what)
    if not _is_same(got, expected):
        raise Mismatch(f"{what} {show(expected)}", f"{show(got)}{_first_difference(got, expected)}")


def _is_same(got: Array, expected: Array) -> bool:
    word = f"u{got.itemsize}"
    if got.itemsize in (1, 2, 4, 8) and got.flags.c_contiguous and expected.flags.c_contiguous:
        return np.array_equal(got.view(word), expected.view(word))
    return got.tobytes() == expected.tobytes()


def expect_close(
    got: Array, expected: Array, ulps: int, what: str = "the result", *, of_largest: bool = False
) -> None:
    """Raises `Mismatch` unless all elements are within ``ulps`` units in the last place.

    The unit is the last place of the expected element, or of the largest one; for both parts of
    complex numbers, the last place of the magnitude. A NaN matches a NaN, an infinity only itself.
    With ``ulps`` 0, and for integers, values must be equal; zeros of both signs are equal.
    """
    _expect_same_type(got, expected, what)
    largest: Any = np.max(np.abs(expected), initial=0).astype(np.float64) if of_largest else 0.0
    if np.issubdtype(expected.dtype, np.complexfloating):
        if not of_largest:
            largest = np.abs(expected)
        for part in ("real", "imag"):
            parts = (getattr(got, part), getattr(expected, part))
            _expect_close(*parts, ulps, f"{what}, {part} part", largest)
        return
    _expect_close(got, expected, ulps, what, largest)


def _expect_close(got: Array, expected: Array, ulps: int, what: str, largest: Any) -> None:
    bad = ~_compare(got, expected, ulps, largest)
    if bad.any():
        i = tuple(int(k[0]) for k in np.nonzero(np.atleast_1d(bad)))
        where = f" at {list(i)}" if expected.ndim else ""
        wanted, found = np.atleast_1d(expected)[i], np.atleast_1d(got)[i]
        count = f"{int(bad.sum())} of {bad.size} elements differ; "
        unit = "ulp"
        if np.ndim(largest):
            unit = f"ulp of {np.atleast_1d(largest)[i]:.3g}, its magnitude"
        elif largest:
            unit = f"ulp of {largest:.3g}, the largest"
        within = f" ± {ulps} {unit}" if ulps else ""
        raise Mismatch(
            f"{what}{where} {wanted}{within} ({expected.dtype})", f"{found}; {count}"[:-2]
        )


def _compare(got: Array, expected: Array, ulps: int, largest: Any) -> Any:
    with np.errstate(all="ignore"):
        same = (got == expected) | ((got != got) & (expected != expected))
        if not ulps or expected.dtype.kind in "biu":
            return same
        unit = _unit(expected, largest)
        apart = np.abs(got.astype(np.float64) - expected.astype(np.float64))
        return same | (np.isfinite(got.astype(np.float64)) & (apart <= ulps * unit))


def _unit(expected: Array, largest: Any) -> Any:
    """Returns the distance from each element to the next greater number of the dtype.

    With ``largest`` (one number, or one for each element), the distance there, if that is greater.
    """
    import ml_dtypes

    info: Any = ml_dtypes.finfo(expected.dtype)
    exponent = np.frexp(np.maximum(np.abs(expected.astype(np.float64)), largest))[1]
    unit = np.ldexp(float(info.eps), exponent - 1)
    return np.maximum(unit, float(info.smallest_subnormal))


def _expect_same_type(got: Array, expected: Array, what: str) -> None:
    wanted = f"{expected.dtype.name}{list(expected.shape)}"
    found = f"{got.dtype.name}{list(got.shape)}" if isinstance(got, np.ndarray) else show(got)
    expect(found == wanted, f"{what} of type {wanted}", found)


def _first_difference(got: Array, expected: Array) -> str:
    size = expected.dtype.itemsize
    a, b = got.tobytes(), expected.tobytes()
    different = np.flatnonzero(np.frombuffer(a, np.uint8) != np.frombuffer(b, np.uint8))
    if different.size and size:
        i = int(different[0]) // size
        begin, end = i * size, (i + 1) * size
        place = f"element {i} in row-major order"
        return f" ({place} is {a[begin:end].hex()}, not {b[begin:end].hex()})"
    return ""


def expect_refusal(call: Callable[[], Any], *kinds: type[BaseException], what: str) -> None:
    """Raises `Mismatch` unless a call raises one of these exceptions."""
    names = " or ".join(kind.__name__ for kind in kinds)
    try:
        found = call()
    except kinds:
        return
    except Exception as error:
        raise Mismatch(f"{what} to raise {names}", describe(error)) from error
    raise Mismatch(f"{what} to raise {names}", f"no error; it returned {show(found)}")


def expect_mistake(call: Callable[[], Any], what: str, *, known: bool = False) -> None:
    """Raises `Mismatch` unless a call raises an error that blames the caller.

    `Unimplemented` does not: to the kit and to hosts it means that the library lacks a feature.
    XLA's own libraries answer the mistakes in ``known`` with INVALID_ARGUMENT, so these must have
    that code. XLA's compiler answers others with UNKNOWN: another code is only a warning.
    """
    try:
        found = call()
    except InvalidArgument:
        return
    except PlugrtError as error:
        if known or isinstance(error, Unimplemented):
            raise Mismatch(f"{what} to raise InvalidArgument", describe(error)) from error
        if isinstance(error, PjrtError):  # a code that a host reacts to
            WARNINGS.append(f"{what} raised {type(error).__name__}, not InvalidArgument")
        return
    raise Mismatch(f"{what} to raise InvalidArgument", f"no error; it returned {show(found)}")
