"""`BackendTopology`: devices that a backend compiles for, present on this machine or not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from plugrt.errors import InvalidArgument
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import (
    CompileOptions,
    DeviceAssignment,
    DeviceDescription,
    OptionValue,
    Program,
    Topology,
)
from plugrt.interface.checks import require_auto_partitioning
from plugrt_sdk.backend import Backend
from plugrt_sdk.compiling import compile_program
from plugrt_sdk.declaration import FIELDS, declared_methods
from plugrt_sdk.executable import BackendExecutable
from plugrt_sdk.returns import require_sequence, wrong_return

_CHOOSES = "chosen_shardings"


class BackendTopology(Topology):
    """The devices that `Backend.topologies` returns; `Backend.devices` is not called."""

    __slots__ = ("__weakref__", "_backend", "_devices", "_methods", "_name", "_options")

    def __init__(self, backend: Backend, name: str, options: Mapping[str, OptionValue]) -> None:
        self._backend = backend
        self._methods = declared_methods(backend)
        if "topologies" not in self._methods:
            self._unimplemented("topologies")
        self._name = name
        self._options = dict(options)
        expected = "DeviceDescriptions, one at least"
        found = require_sequence(backend, "topologies", backend.topologies(name, options), expected)
        if not found or not all(isinstance(device, DeviceDescription) for device in found):
            raise wrong_return(backend, "topologies", expected, found)
        self._devices: tuple[DeviceDescription, ...] = tuple(found)

    @property
    def backend_name(self) -> str:
        return f"{self._backend.platform!r} (plugrt_sdk)"

    @property
    def platform(self) -> str:
        return self._backend.platform

    @property
    def platform_version(self) -> str:
        return self._backend.version

    @property
    def devices(self) -> Sequence[DeviceDescription]:
        return self._devices

    @property
    def attributes(self) -> Mapping[str, OptionValue]:
        return {FIELDS[_CHOOSES]: True} if _CHOOSES in self._methods else {}

    @property
    def stablehlo_current_version(self) -> tuple[int, int, int] | None:
        return self._backend.stablehlo_version

    @with_argument_errors
    def compile(self, program: Program, options: CompileOptions) -> BackendExecutable:
        backend = self._backend
        require_auto_partitioning(
            options.use_auto_spmd_partitioning, _CHOOSES in self._methods, self.backend_name
        )
        assignment = options.device_assignment or self._default_assignment(options)
        known = {device.id for device in self._devices}
        if not known.issuperset(assignment.flat):
            raise InvalidArgument(
                f"the topology {self._name!r} has the devices {sorted(known)}; the program is to "
                f"run on {list(assignment.flat)}"
            )
        placed = replace(options, device_assignment=assignment)
        kinds = [*backend.memories(self._devices[0].id)]
        compiled = compile_program(backend, self._methods, program, placed, kinds)
        return BackendExecutable(backend, self._methods, compiled)

    def _default_assignment(self, options: CompileOptions) -> DeviceAssignment:
        """Returns the first devices, replica-major."""
        partitions = options.num_partitions
        need = options.num_replicas * partitions
        ids = [device.id for device in self._devices[:need]]
        if len(ids) < need:
            raise InvalidArgument(
                f"{options.num_replicas} replicas x {partitions} partitions need {need} devices; "
                f"the topology {self._name!r} has {len(ids)}"
            )
        rows = [tuple(ids[i : i + partitions]) for i in range(0, need, partitions)]
        return DeviceAssignment(tuple(rows))

    def serialize(self) -> bytes:
        stated = [self.platform, self.platform_version, self._name, self._options]
        return json.dumps(stated, sort_keys=True).encode()

    def fingerprint(self) -> int:
        return int.from_bytes(hashlib.sha256(self.serialize()).digest()[:8], "little")
