"""Mutants of programs of certain sizes, whose results have a wrong last element."""

from __future__ import annotations

from collections.abc import Mapping

from mutants.puts import flip
from mutants.results import change_where, each, spoil, wrong_result
from plugrt.interface import Program
from plugrt_sdk.conformance.checks.sizes import CHAPTER
from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.conformance.mutants.faults import Faults
from plugrt_sdk.conformance.operation_cases import SHAPES
from plugrt_sdk.testing.program_text import typed

_SHAPES = {"borders": (3, 129), "large": (1025, 1031), "ranks": SHAPES[-1]}


def _returned(dtype: str) -> Faults:
    """Returns a mutant whose results of a dtype, of three rows of 129, are wrong if returned."""

    def applies(text: str, program: Program) -> bool:
        return "stablehlo." not in text

    def change(array: Array) -> Array:
        return flip(array) if (array.dtype.name, array.shape) == (dtype, (3, 129)) else array

    return wrong_result(applies, each(change))


def _of(name: str) -> Faults:
    if name.startswith("sizes.results."):
        return _returned(name.rpartition(".")[2])
    _, part, operation, dtype = name.split(".")
    return change_where(f"stablehlo.{operation} {typed(_SHAPES[part], dtype)}", spoil(0))


MUTANTS: Mapping[str, Faults] = {check.id: _of(check.id) for check in CHAPTER}
