"""`compute_narrow_types`: avoids faults of XLA's CPU compiler with 2-bit and 4-bit numbers.

``tools/narrow_types.py`` finds the faults by trial and writes them to ``docs/data/narrow_types``;
`narrow_faults` is generated from these files.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache

from plugrt.errors import Unimplemented
from plugrt.execution.compilation.narrow_faults import FAULTS, TRIED
from plugrt.interface import Client, CompileOptions, Program, Topology
from plugrt.monitoring.stage_events import logger
from plugrt.wire import mlir_bytecode

_IN_TEXT = re.compile(rb"\b(?:u?i[24]|f4E2M1FN)\b(?=[>,])|x(u?i[24]|f4E2M1FN)\b")
EXCHANGES = ("all_gather", "all_to_all", "collective_permute", "all_reduce", "reduce_scatter")
"""Operations that a partitioner inserts to exchange parts."""
_VERSION = re.compile(r"jaxlib (\S+)")

Faults = Mapping[str, Collection[str]]
"""By operation, the element types that are wrong, refused or fatal."""


def compute_narrow_types(
    program: Program, target: Client | Topology, options: CompileOptions
) -> Program:
    """Returns the program with the operations that the compiler gets wrong converted to int8.

    Only XLA's compiler for CPUs has known faults. Every target of the platform ``cpu`` is treated
    as one, since no library names its compiler; jaxlib's states its version. Raises
    `Unimplemented`, with advice, for operations that cannot be converted.
    """
    if target.platform != "cpu" or program.format != "mlir":
        return program
    present = _narrow_types(program.code)
    if not present:
        return program
    faults = _faults_of(target.platform_version)
    if not any(present.intersection(names) for names in faults.values()):
        return program
    if importlib.util.find_spec("jaxlib") is None:
        _refuse_named(program, faults, present)
        return program
    return _rewrite(program, target, options, faults)


def _narrow_types(code: bytes) -> set[str]:
    """Returns the element types of 2 and 4 bits in a program, in StableHLO's spelling."""
    if not code.startswith(mlir_bytecode.MAGIC):
        return {re.sub(rb"^x", b"", m[0]).decode() for m in _IN_TEXT.finditer(code)}
    try:
        return mlir_bytecode.narrow_types(code)
    except (IndexError, KeyError, ValueError):  # the compiler reports the fault
        return set()


@cache
def _faults_of(platform_version: str) -> Faults:
    """Returns the faults of a version of jaxlib; for an untested one, of all versions together."""
    named = _VERSION.match(platform_version)
    tried: tuple[str, ...] = TRIED
    if named and named[1] in TRIED:
        tried = (named[1],)
    elif named:
        logger.warning(
            "what XLA's CPU compiler in jaxlib %s does with 2-bit and 4-bit numbers was not tried; "
            "plugrt avoids what is wrong in any of %s", named[1], ", ".join(TRIED),
        )  # fmt: skip
    faults: dict[str, set[str]] = {}
    for name, kinds, libraries in FAULTS:
        if not set(tried).isdisjoint(libraries):
            faults.setdefault(name, set()).update(kinds)
    return faults


def _rewrite(
    program: Program, target: Client | Topology, options: CompileOptions, faults: Faults
) -> Program:
    from plugrt.stablehlo.eight_bits import (
        FLOAT,
        INTEGERS,
        compute_floats_in_float32,
        compute_in_eight_bits,
        faulty_operations,
    )
    from plugrt.stablehlo.modules import parse, portable_artifact

    module = parse(program.code, program.name)
    found = {*faulty_operations(module, faults)}
    kinds = {kind for _, kind in found}
    if options.num_partitions > 1:  # the partitioner may exchange parts anywhere
        exchanged = {kind for name in EXCHANGES for kind in faults.get(name, ())}
        kinds |= exchanged.intersection(_narrow_types(program.code))
    if not kinds:
        return program
    if floats := {name for name, kind in found if kind == FLOAT}:
        compute_floats_in_float32(module, floats)
    if integers := kinds & INTEGERS.keys():
        compute_in_eight_bits(module, integers, keeps_shardings=options.num_partitions > 1)
    stating = target if isinstance(target, Topology) else target.capabilities
    version = stating.stablehlo_current_version
    return replace(program, code=portable_artifact(module, version))


def _refuse_named(program: Program, faults: Faults, present: set[str]) -> None:
    """Raises `Unimplemented` if a program that cannot be parsed here names such an operation."""
    for name in sorted(faults):
        if name.encode() in program.code and (kinds := present.intersection(faults[name])):
            raise Unimplemented(
                f"{program.name!r} has {name} and numbers of the type {min(kinds)}, which XLA's "
                "CPU compiler does wrongly together; plugrt rewrites the program where jaxlib is "
                'installed: pip install "plugrt[trace]"'
            )
