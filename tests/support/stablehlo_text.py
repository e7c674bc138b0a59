"""StableHLO programs of many operations, written one by one, with their arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from plugrt.stablehlo.element_names import tensor_name

Value = tuple[str, str]
"""A value's name and its type."""

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NARROW = ("int4", "uint4")
FLOATS = ("float16", "bfloat16", "float32", "float64")
EIGHTS = ("float8_e4m3fn", "float8_e5m2")
COMPLEX = ("complex64", "complex128")


def named_dtype(name: str) -> np.dtype[Any]:
    """Returns the dtype of a name, ml_dtypes' included."""
    return np.dtype(getattr(ml_dtypes, name, name))


class ProgramText:
    """A program whose ``main`` returns what each operation that was added gives."""

    def __init__(self) -> None:
        self.arguments: list[np.ndarray[Any, Any]] = []
        self._lines: list[str] = []
        self._parameters: list[str] = []
        self.results: list[Value] = []
        """What ``main`` returns."""
        self._count = 0

    def argument(self, array: Any) -> Value:
        """Adds a parameter."""
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        value = f"%a{len(self.arguments)}", tensor_name(array.shape, array.dtype)
        self.arguments.append(array)
        self._parameters.append(f"{value[0]}: {value[1]}")
        return value

    def constant(self, literal: str, kind: str) -> Value:
        """Adds a constant, which is no result."""
        return self._add(f"stablehlo.constant dense<{literal}> : {kind}", [kind])[0]

    def apply(
        self,
        name: str,
        operands: Sequence[Value],
        results: Sequence[str],
        attributes: str = "",
        regions: Sequence[str] = (),
        *,
        returned: bool = True,
    ) -> list[Value]:
        """Adds ``stablehlo.NAME`` with result types; what it gives is returned from ``main``."""
        values = ", ".join(v for v, _ in operands)
        held = f" ({', '.join('{' + r + '}' for r in regions)})" if regions else ""
        line = (
            f'"stablehlo.{name}"({values}){held} {{{attributes}}} : '
            f"({', '.join(t for _, t in operands)}) -> ({', '.join(results)})"
        )
        made = self._add(line, results)
        if returned:
            self.results += made
        return made

    def _add(self, line: str, results: Sequence[str]) -> list[Value]:
        name = f"%v{self._count}"
        self._count += 1
        left = f"{name}:{len(results)}" if len(results) > 1 else name
        self._lines.append(f"{left} = {line}")
        if len(results) == 1:
            return [(name, results[0])]
        return [(f"{name}#{i}", kind) for i, kind in enumerate(results)]

    def without(self, words: Sequence[str]) -> ProgramText:
        """Returns the program without the operations in whose text one of the words is, and
        without those that take what they give."""
        left = ProgramText()
        gone: set[str] = set()
        for parameter, array in zip(self._parameters, self.arguments, strict=True):
            if any(word in parameter for word in words):
                gone.add(parameter.partition(":")[0])
            else:
                left._parameters.append(parameter)
                left.arguments.append(array)
        for line in self._lines:
            used = set(re.findall(r"%[av]\d+", line.partition(" = ")[2]))
            if used & gone or any(word in line for word in words):
                gone.add(line.partition(" = ")[0].partition(":")[0])
            else:
                left._lines.append(line)
        left.results = [r for r in self.results if r[0].partition("#")[0] not in gone]
        return left

    def text(self) -> str:
        """Returns the module."""
        names = ", ".join(v for v, _ in self.results)
        types = ", ".join(t for _, t in self.results)
        return (
            "\n  ".join(
                [
                    f"func.func public @main({', '.join(self._parameters)}) -> ({types}) {{",
                    *self._lines,
                    f"func.return {names} : {types}",
                ]
            )
            + "\n}\n"
        )


def typed(shape: Sequence[int], dtype: Any) -> str:
    """Returns the spelling of a type."""
    return tensor_name(tuple(shape), named_dtype(dtype) if isinstance(dtype, str) else dtype)


def body(operation: str, dtype: str) -> str:
    """Returns a region of one operation on two scalars."""
    t = typed((), dtype)
    return (
        f"^bb0(%x: {t}, %y: {t}): %r = stablehlo.{operation} %x, %y : {t} stablehlo.return %r : {t}"
    )


def sample(rng: np.random.Generator, shape: Sequence[int], name: str) -> np.ndarray[Any, Any]:
    """Returns random values of a dtype: integers of its range, floats with special ones."""
    dtype = named_dtype(name)
    if name == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if "int" in name:
        info = ml_dtypes.iinfo(dtype)
        low, high = int(info.min), int(info.max)
        wide = rng.integers(low, high, shape, dtype="u8" if low == 0 else "i8", endpoint=True)
        near = rng.integers(max(low, -3), min(high, 3), shape, endpoint=True)
        return np.where(rng.random(shape) < 0.5, wide.astype(dtype), near.astype(dtype))
    if "complex" in name:
        part = "float32" if name == "complex64" else "float64"
        x = np.empty(shape, dtype)
        x.real, x.imag = (rng.normal(size=shape).astype(part) for _ in range(2))
        return x
    values = rng.normal(size=shape) * 4.0 ** rng.integers(-3, 3, shape)
    special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.5, -2.5], shape)
    return np.where(rng.random(shape) < 0.2, special, values).astype(dtype)


def integral(rng: np.random.Generator, shape: Sequence[int], name: str) -> np.ndarray[Any, Any]:
    """Returns small whole numbers: sums of their products are exact in every dtype."""
    low = 0 if name.startswith("u") else -3
    values = rng.integers(low, 4, shape)
    if "complex" in name:
        return (values + 1j * rng.integers(low, 4, shape)).astype(named_dtype(name))
    return values.astype(named_dtype(name))


def assert_close(found: Any, wanted: Any, what: str, ulps: float = 8) -> None:
    """Compares arrays: integers exactly, floats to so many units in the last place, also of the
    largest part of a complex number."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), what
    name = wanted.dtype.name
    if name == "bool" or "int" in name:
        np.testing.assert_array_equal(found, wanted, err_msg=what)
        return
    if "complex" in name:
        scale = np.abs(wanted)
        part = wanted.real.dtype
        for a, b in ((found.real, wanted.real), (found.imag, wanted.imag)):
            _close(a, b, np.nan_to_num(scale, posinf=1), part, what, ulps)
        return
    wide = np.float64
    a, b = found.astype(wide), wanted.astype(wide)
    _close(a, b, np.abs(np.nan_to_num(b, posinf=1, neginf=1)), wanted.dtype, what, ulps)


def _close(a: Any, b: Any, scale: Any, dtype: Any, what: str, ulps: float) -> None:
    info = ml_dtypes.finfo(dtype)
    if info.bits <= 16:
        ulps = min(ulps, 2)
    room = ulps * float(info.eps) * scale + ulps * float(info.smallest_subnormal)
    with np.errstate(invalid="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= room)
        # Denormal numbers are zero to XLA.
        same |= (np.abs(a) <= float(info.tiny)) & (np.abs(b) <= float(info.tiny))
    if not np.all(same):
        worst = np.argwhere(~np.asarray(same))[0]
        raise AssertionError(
            f"{what}: {(~same).sum()} of {same.size} differ, first at {worst}: "
            f"{np.asarray(a)[tuple(worst)]!r}, wanted {np.asarray(b)[tuple(worst)]!r}"
        )
