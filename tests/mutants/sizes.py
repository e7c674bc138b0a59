"""Mutants of programs of certain sizes, whose results have a wrong last element."""

from __future__ import annotations

from collections.abc import Mapping

from mutants.results import change_where, spoil
from plugrt_sdk.conformance.checks.sizes import CHAPTER
from plugrt_sdk.conformance.mutants.faults import Faults
from plugrt_sdk.conformance.operation_cases import SHAPES
from plugrt_sdk.testing.program_text import typed

_SHAPES = {"borders": (3, 129), "large": (1025, 1031), "ranks": SHAPES[-1]}


def _of(name: str) -> Faults:
    _, part, operation, dtype = name.split(".")
    return change_where(f"stablehlo.{operation} {typed(_SHAPES[part], dtype)}", spoil(0))


MUTANTS: Mapping[str, Faults] = {check.id: _of(check.id) for check in CHAPTER}
