"""The device. Here NumPy simulates it: replace each method's body by calls to your own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from plugrt.interface import CompileOptions, Program, TensorType
from plugrt_sdk import Backend, Handle, Launch
from plugrt_sdk.numpy_backend.backend import NumpyBackend


class MyChipBackend(Backend):
    """One or several devices. The keyword arguments are create options."""

    platform, version = "my-chip", "0.1.0"

    def __init__(self, num_devices: int = 1) -> None:
        self._simulator = NumpyBackend(num_devices)
        self.stablehlo_version = self._simulator.stablehlo_version

    # --- the four methods ------------------------------------------------------------------------

    def devices(self) -> Sequence[str]:
        """Returns the kind of each device, in the order of their ids."""
        return ["my-chip (simulated)"] * len(self._simulator.devices())

    def put(self, array: npt.NDArray[Any], device: int) -> Handle:
        """Copies a host array to a device and returns a handle: any object of yours."""
        return self._simulator.put(array, device)

    def get(self, handle: Handle) -> npt.NDArray[Any]:
        """Returns the contents of an array that is on a device."""
        return np.asarray(self._simulator.get(handle))

    def compile(self, program: Program, options: CompileOptions) -> Launch:
        """Returns a function that launches a StableHLO program.

        ``plugrt_sdk.read_module(program)`` parses it. The function takes
        ``arguments[parameter][device]`` and returns ``results[result][device]``, all of them
        handles. Raise `plugrt.errors.Unimplemented` for what the device cannot do.
        """
        return self._simulator.compile(program, options)

    # --- more methods, more capabilities: those of plugrt_sdk.Backend ----------------------------

    def replicas(self) -> int:
        """Returns the most replicas that a launch can have."""
        return self._simulator.replicas()

    def partitions(self) -> int:
        """Returns the most partitions that a launch can have."""
        return self._simulator.partitions()

    def collectives(self) -> Collection[str]:
        """Returns the StableHLO operations by which the devices of a launch exchange data."""
        return self._simulator.collectives()

    def device_types(
        self, program: Program, options: CompileOptions
    ) -> tuple[Sequence[TensorType], Sequence[TensorType]] | None:
        """Returns the types on one device of a program that is divided between devices."""
        return self._simulator.device_types(program, options)
