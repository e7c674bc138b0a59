"""Mutants of collectives and shardings, with a wrong last element on the second device."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mutants.results import spoil
from plugrt.interface import CompileOptions, Program
from plugrt.stablehlo.element_names import element_name
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk.conformance.check import Check
from plugrt_sdk.conformance.checks import collectives as checks
from plugrt_sdk.conformance.collectives import COLLECTIVES, MOVED
from plugrt_sdk.conformance.mutants.faults import Faults
from plugrt_sdk.reading import read_module


def spoil_second(*words: str, devices: int = 2) -> Faults:
    """Returns a mutant with a wrong result on the second device, in programs with these words."""

    def compile(self: NumpyBackend, program: Program, options: CompileOptions) -> Any:
        launch = NumpyBackend.compile(self, program, options)
        text = str(read_module(program))
        several = options.num_replicas * options.num_partitions > 1
        if not several or not all(re.search(word, text) for word in words):
            return launch

        def run(*given: Any) -> Sequence[Any]:
            change = spoil(0)
            return [[s[0], change(s[1]), *s[2:]] for s in launch(*given)]

        return run

    return Faults(backend={"compile": compile}, devices=devices)


def _typed(dtype: str) -> str:
    return rf"[<x]{re.escape(element_name(np.dtype(dtype)))}>"


_ROWS = {"alone": "tensor<2x1xi64>", "pairs": "tensor<2x2xi64>", "four": "tensor<1x4xi64>"}


def _words_of(check: Check) -> tuple[str, str]:
    """Returns the text of programs with the groups and the dtype of a check."""
    name, _, dtype = check.id.partition(".groups.")[2].partition(".")
    return _ROWS[name], _typed(dtype or "float32")


MUTANTS: Mapping[str, Faults] = {
    **{
        f"collectives.{found.id}.{dtype}": spoil_second(f"stablehlo.{found.name}", _typed(dtype))
        for found in COLLECTIVES
        for dtype in found.dtypes
    },
    **{
        check.id: spoil_second(f"stablehlo.{check.id.split('.')[1]}", *_words_of(check), devices=4)
        for check in checks.CHAPTER
        if ".groups." in check.id
    },
    **{
        f"collectives.collective_permute.swap.{dtype}": spoil_second(
            "collective_permute", "tensor<2x2xi64>", _typed(dtype)
        )
        for dtype in MOVED[1:]
    },
    "collectives.collective_permute.swap": spoil_second("collective_permute", "tensor<2x2xi64>"),
    "collectives.collective_permute.shift": spoil_second("collective_permute", "tensor<1x2xi64>"),
    "collectives.replica_id": spoil_second("replica_id"),
    **{check.id: spoil_second("sdy.mesh") for check in checks.CHAPTER if ".sharding." in check.id},
}
