"""Mutants of operations: each changes the results of programs with an operation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mutants.results import each, spoil, spoil_largest, wrong_result
from plugrt.errors import Unimplemented
from plugrt.interface import CompileOptions, Program
from plugrt.stablehlo.element_names import element_name
from plugrt_sdk.conformance.checks.operations import HOST_TRANSFERS
from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.conformance.mutants.faults import Faults, MutantClient
from plugrt_sdk.conformance.operation_cases import (
    CASES,
    COMPLEX,
    MLIR_NAMES,
    Case,
    case_id,
    ulps_of,
)
from plugrt_sdk.conformance.operations import SAMPLES, Sample
from plugrt_sdk.conformance.operations.edges import SIGNED_ZERO, SPECIAL, SUBNORMAL, WRAPPED
from plugrt_sdk.reading import read_module


def _operation(case: Case, dtype: str) -> Faults:
    written = re.compile(rf"stablehlo\.{case.name}\s+{case.attributes or '%'}")

    def applies(text: str, program: Program) -> bool:
        return bool(written.search(text)) and f"x{MLIR_NAMES[dtype]}>" in text

    return wrong_result(applies, each(spoil(ulps_of(case, dtype), of_largest=dtype in COMPLEX)))


def _sampled(sample: Sample, dtype: str) -> Faults:
    """Returns a mutant that changes the results of programs with an operation and a dtype."""
    element = re.escape(element_name(np.dtype(dtype)))
    written = re.compile(rf"stablehlo\.{sample.name}\b")
    typed = re.compile(rf"[<x]{element}>")

    def applies(text: str, program: Program) -> bool:
        return bool(written.search(text) and typed.search(text))

    return wrong_result(applies, each(_CHANGES.get(sample.variant, spoil_largest(sample.ulps))))


def _without_specials(array: Array) -> Array:
    """Replaces NaN and infinities by zeros; changes one boolean."""
    if array.dtype == bool:
        return spoil(0)(array)
    return np.where(np.isfinite(array), array, array.dtype.type(0))


def _saturated(array: Array) -> Array:
    """Replaces the least integer and zero by the greatest one."""
    info = np.iinfo(array.dtype)
    return np.where((array == info.min) | (array == 0), array.dtype.type(info.max), array)


def _turned(array: Array) -> Array:
    """Returns one divided by the result, as if zeros had the other sign."""
    return np.where(np.isinf(array), -array, array)


def _flushed(array: Array) -> Array:
    """Replaces subnormal numbers by zeros; changes one boolean."""
    return spoil(0)(array) if array.dtype == bool else np.zeros_like(array)


_CHANGES: Mapping[str, Callable[[Array], Array]] = {
    SPECIAL: _without_specials,
    WRAPPED: _saturated,
    SIGNED_ZERO: _turned,
    SUBNORMAL: _flushed,
}
"""The changes of mutants to special values of a dtype."""


def _zeros_in_place(self: MutantClient, program: Program, options: CompileOptions) -> Any:
    """Compiles a program of the same type that returns zeros, instead of a refused one."""
    try:
        return MutantClient.compile(self, program, options)
    except Unimplemented:
        return MutantClient.compile(self, _zeros_like(str(read_module(program))), options)


def _zeros_like(text: str) -> Program:
    """Returns a program of the same type that returns zeros."""
    found = re.search(r"(func\.func public @main\(.*\) -> )\(?(tensor<\S*>)\)? {", text)
    assert found is not None, text
    head, kind = found.groups()
    zero = "0" if re.search(r"[<x]i\d+>", kind) else "0.0"
    body = f"%0 = stablehlo.constant dense<{zero}> : {kind} func.return %0 : {kind}"
    return Program(f"{head}{kind} {{ {body} }}".encode())


def _take_quantised(self: MutantClient, program: Program, options: CompileOptions) -> Any:
    """Compiles a program with quantised numbers as one that returns zeros."""
    if b"uniform_quantize" in program.code:
        program = _zeros_like(program.code.decode())
    return MutantClient.compile(self, program, options)


def _uncommon(sample: Sample, dtype: str) -> Faults:
    """Returns a mutant that returns wrong results also where the NumPy backend refuses."""
    return replace(_sampled(sample, dtype), client={"compile": _zeros_in_place})


def _stop_at(name: str) -> Faults:
    """Returns a mutant whose compiler has a fault for programs with an operation."""

    def compile(self: MutantClient, program: Program, options: CompileOptions) -> Any:
        if f"stablehlo.{name}" in str(read_module(program)):
            raise RuntimeError(f"no handler of {name}")
        return MutantClient.compile(self, program, options)

    return Faults(client={"compile": compile})


MUTANTS: Mapping[str, Faults] = {
    **{f"operations.{name}.compiled": _stop_at(name) for name in HOST_TRANSFERS},
    "operations.uniform_quantize.float32": Faults(client={"compile": _take_quantised}),
    **{
        f"operations.{case_id(case)}.{dtype}": _operation(case, dtype)
        for case in CASES
        for dtype in case.dtypes
    },
    **{
        f"operations.{sample.id}.{dtype}": (_uncommon if sample.uncommon else _sampled)(
            sample, dtype
        )
        for sample in SAMPLES
        for dtype in sample.dtypes
    },
}
