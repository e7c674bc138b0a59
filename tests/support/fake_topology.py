"""A plugin that compiles for absent devices, and records its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from plugrt.errors import InvalidArgument, PluginUnavailable
from plugrt.interface import (
    Client,
    CompileOptions,
    DeviceDescription,
    Executable,
    MemoryAnalysis,
    OptionValue,
    Program,
    TensorType,
    Topology,
)
from plugrt.plugins import Plugin


class FakeExecutable(Executable):
    """Its artifact is the program; its memory and cost figures are constants."""

    def __init__(self, program: Program, options: CompileOptions) -> None:
        self.program, self.options = program, options
        self.name = program.name
        self.num_replicas, self.num_partitions = options.num_replicas, options.num_partitions
        self.output_types = (TensorType((2,), np.dtype(np.float32)),)

    name = ""
    num_replicas = num_partitions = 1
    output_types: Sequence[TensorType] = ()

    def serialize(self) -> bytes:
        return b"artifact of " + self.program.name.encode()

    def cost_analysis(self) -> Mapping[str, OptionValue]:
        return {"flops": 12.0, "bytes accessed": 34.0}

    def memory_analysis(self) -> MemoryAnalysis:
        return MemoryAnalysis(temp_size_in_bytes=56)

    def as_text(self) -> str:
        return "HloModule fake"

    def fingerprint(self) -> bytes:
        return b"finger"


class FakeTopology(Topology):
    """Devices of a kind, whose compiler reads a StableHLO version; an option sets the platform."""

    platform_version = "far 1"
    stablehlo_current_version = (1, 0, 0)

    def __init__(self, count: int, options: Mapping[str, OptionValue]) -> None:
        self.devices = tuple(DeviceDescription(i, 0, "Far 9000") for i in range(count))
        self.options = dict(options)
        self.platform = str(options.get("platform", "far"))

    platform = "far"
    devices: Sequence[DeviceDescription] = ()

    def compile(self, program: Program, options: CompileOptions) -> FakeExecutable:
        if b"refuse" in program.code:
            raise InvalidArgument("the compiler refuses this program")
        return FakeExecutable(program, options)


class FarPlugin(Plugin):
    """A plugin whose client never starts. The name of a topology is its size."""

    def __init__(self, name: str = "far") -> None:
        self.name = name
        self.asked_for_clients = 0

    def create_client(self, options: object, distributed: object = None) -> Client:
        self.asked_for_clients += 1
        raise PluginUnavailable("far away")

    def create_topology(self, name: str, options: Mapping[str, OptionValue]) -> FakeTopology:
        if not name.isdecimal():
            raise InvalidArgument(f"{name!r} is no number of devices")
        return FakeTopology(int(name), options)


plugin = FarPlugin()
