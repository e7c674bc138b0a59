"""`Sample`: an operation, its dtypes, and the functions that make program and results."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plugrt.stablehlo.element_names import ELEMENT_NAMES
from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.testing.program_text import ProgramText, named_dtype

Write = Callable[[ProgramText, str, np.random.Generator], Sequence[Any]]
"""Writes a program for a dtype; returns NumPy's values, one for each result.

Floats are computed in float64 and complex numbers in complex128; `Sample.make` rounds them to the
dtype of the result, once. Values of any other dtype are compared as they are.
"""

_DTYPES = {element: named_dtype(name) for name, element in ELEMENT_NAMES.items()}

FLOATS = ("float32", "bfloat16", "float16", "float64")
INTEGERS = ("int32", "int8", "int64", "int16", "uint8", "uint32", "uint16", "uint64")
NUMBERS = (*FLOATS, *INTEGERS)
COMPLEX = ("complex64", "complex128")
MOVED = (*NUMBERS, "bool", *COMPLEX)
"""The dtypes of operations that move elements."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A test of an operation of the specification.

    ``what`` names the part, ``variant`` distinguishes two samples of one operation. ``ulps`` is the
    allowed error in units in the last place, of the largest element of a result if ``of_largest``:
    sums of many terms have no better bound. ``interpreted`` states that StableHLO's reference
    interpreter has the operation; otherwise it would end its process. An ``uncommon`` operation is
    deprecated by the specification, or rare in programs: a compiler without it may refuse it with
    any error, not only `plugrt.errors.Unimplemented`.
    """

    name: str
    what: str
    dtypes: Sequence[str]
    write: Write
    variant: str = ""
    ulps: int = 0
    of_largest: bool = False
    interpreted: bool = True
    uncommon: bool = False

    @property
    def id(self) -> str:
        """The part of a check's id that names it."""
        name = self.name.replace("-", "_")
        return f"{name}.{self.variant}" if self.variant else name

    def make(self, dtype: str, seed: int) -> tuple[ProgramText, list[Array]]:
        """Returns the program with its arguments, and the expected results."""
        program = ProgramText()
        random = np.random.default_rng([seed, zlib.crc32(f"{self.id}.{dtype}".encode())])
        with np.errstate(all="ignore"):
            found = self.write(program, dtype, random)
            types = [kind for _, kind in program.results]
            return program, [_round(*pair) for pair in zip(found, types, strict=True)]


def _round(value: Any, kind: str) -> Array:
    """Rounds float64 and complex128 to the dtype of a result of this type."""
    array = np.asarray(value)
    if array.dtype not in (np.float64, np.complex128):
        return array
    element = re.sub(r"^(\d+x)*", "", kind.removeprefix("tensor<").removesuffix(">"))
    return array.astype(_DTYPES[element])


class Samples(list[Sample]):
    """The samples of a module, in order."""

    def add(self, name: str, dtypes: Sequence[str], **rest: Any) -> Callable[[Write], Write]:
        """Returns a decorator of a function that writes the program.

        Its docstring is ``what``.
        """

        def add(write: Write) -> Write:
            what = (write.__doc__ or "").strip().partition("\n")[0]
            self.append(Sample(name, what, dtypes, write, **rest))
            return write

        return add


def numbered(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Returns distinct small numbers in random order; booleans at random."""
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    values = random.permutation(int(np.prod(shape))).reshape(shape) % 120
    if "complex" in dtype:
        return (values + 1j * (values + 1)).astype(named_dtype(dtype))
    return values.astype(named_dtype(dtype))


def whole(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Returns whole numbers up to 3: sums of their products are exact in every dtype."""
    low = 0 if dtype.startswith("u") else -3
    values = random.integers(low, 4, shape)
    if "complex" in dtype:
        return (values + 1j * random.integers(low, 4, shape)).astype(named_dtype(dtype))
    return values.astype(named_dtype(dtype))


def wide(array: Array) -> Array:
    """Returns floats as float64, complex numbers as complex128, integers unchanged."""
    if array.dtype.kind in "iub":
        return array
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
