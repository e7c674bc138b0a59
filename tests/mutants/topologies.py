"""Mutants of topologies: the NumPy backend with a named topology, and a fault in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from plugrt.errors import PlugrtError
from plugrt.interface import CompileOptions, DeviceDescription, Program
from plugrt_sdk.conformance.mutants.faults import Faults, MutantClient
from plugrt_sdk.testing.programs import ADD
from plugrt_sdk.topology import BackendTopology

_serial = count()


def _with_topology(ids: tuple[int, ...] = (0, 1), **members: Any) -> Faults:
    """Returns a mutant that describes devices with these ids, by a topology with these members."""
    cls = type("MutantTopology", (BackendTopology,), {"__slots__": (), **members})

    def describe(self: Any, name: str, options: Mapping[str, Any]) -> list[DeviceDescription]:
        return [DeviceDescription(i, 0, "NumPy") for i in ids]

    def topology(self: MutantClient) -> BackendTopology:
        found: BackendTopology = cls(self.backend, "", {})
        return found

    return Faults(backend={"topologies": describe}, client={"topology": topology})


def _compile_sum(self: BackendTopology, program: Program, options: CompileOptions) -> Any:
    """Compiles the sum of two arrays for each program."""
    return BackendTopology.compile(self, Program(ADD.encode()), options)


def _compile_fewer(self: BackendTopology, program: Program, options: CompileOptions) -> Any:
    """Compiles for as many replicas as it has devices."""
    try:
        return BackendTopology.compile(self, program, options)
    except PlugrtError:
        if options.num_replicas == 1:
            raise
        return BackendTopology.compile(self, program, replace(options, num_replicas=1))


MUTANTS: Mapping[str, Faults] = {
    "topologies.devices": _with_topology(ids=(0, 0)),
    "topologies.compile": _with_topology(compile=_compile_sum),
    "topologies.compile.refused": _with_topology(compile=_compile_fewer),
    "topologies.identity": _with_topology(fingerprint=lambda self: next(_serial)),
}
