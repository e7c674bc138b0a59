"""Mutants of compilation for absent devices: NumPy backends with a topology of two devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from plugrt.errors import InvalidArgument
from plugrt.interface import CompileOptions, DeviceDescription, OptionValue, Program
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk.conformance.mutants.faults import Faults, Members, recast
from plugrt_sdk.executable import BackendExecutable
from plugrt_sdk.testing.programs import ADD
from plugrt_sdk.topology import BackendTopology

_count = count()


def _topologies(
    self: NumpyBackend, name: str, options: Mapping[str, OptionValue]
) -> Sequence[DeviceDescription]:
    if name:
        raise InvalidArgument(f"there is no topology {name!r}")
    return _any_name(self, name, options)


def _any_name(self: NumpyBackend, name: str, options: Any) -> Sequence[DeviceDescription]:
    return [DeviceDescription(i, 0, "NumPy") for i in range(len(self.devices()))]


COMPILES: Members = {"topologies": _topologies}
"""The methods that the NumPy backend lacks, without a fault."""


def _topology(**members: Any) -> Faults:
    return Faults(backend=COMPILES, topology=members)


def _compile_other(self: BackendTopology, program: Program, options: CompileOptions) -> Any:
    other = ADD.replace("f32", "i32").encode()
    return BackendTopology.compile(self, replace(program, code=other), options)


def _compile_anything(self: BackendTopology, program: Program, options: CompileOptions) -> Any:
    code = ADD.encode() if program.code == b"nonsense" else program.code
    return BackendTopology.compile(self, replace(program, code=code), options)


def _compile_for_one(self: BackendTopology, program: Program, options: CompileOptions) -> Any:
    return BackendTopology.compile(self, program, replace(options, num_replicas=1))


def _compile_unsaved(self: BackendTopology, program: Program, options: CompileOptions) -> Any:
    made = BackendTopology.compile(self, program, options)
    return recast(made, BackendExecutable, {"serialize": lambda executable: b""})


MUTANTS: Mapping[str, Faults] = {
    "ahead_of_time.devices": _topology(devices=[DeviceDescription(0, 0, "NumPy")] * 2),
    "ahead_of_time.again": _topology(attributes=property(lambda self: {"made": next(_count)})),
    "ahead_of_time.unknown": Faults(backend={"topologies": _any_name}),
    "ahead_of_time.compile": _topology(compile=_compile_other),
    "ahead_of_time.compile.nonsense": _topology(compile=_compile_anything),
    "ahead_of_time.compile.devices": _topology(compile=_compile_for_one),
    "ahead_of_time.compile.serialization": _topology(compile=_compile_unsaved),
    "ahead_of_time.fingerprint": _topology(fingerprint=lambda self: next(_count)),
    "ahead_of_time.serialize": _topology(serialize=lambda self: b""),
}
