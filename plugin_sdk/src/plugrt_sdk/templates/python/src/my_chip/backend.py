"""The device. NumPy simulates it: replace each method's body by calls to your own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy.typing as npt
from plugrt.interface import CompileOptions, Handler, Program, TensorType
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import Backend, Compiled, Handle, Launch


class MyChipBackend(Backend):
    """One or several devices. The arguments of ``__init__`` are create options."""

    platform, version = "my-chip", "0.1.0"

    def __init__(self, num_devices: int | str = 1) -> None:
        self._numpy = NumpyBackend(num_devices)
        self.stablehlo_version = self._numpy.stablehlo_version

    def devices(self) -> Sequence[str]:
        """Returns the kind of each device, in the order of their ids."""
        return ["my-chip (NumPy)"] * len(self._numpy.devices())

    def put(self, array: npt.NDArray[Any], device: int) -> Handle:
        """Copies a host array to a device and returns a handle: any object of yours."""
        return self._numpy.put(array, device)

    def get(self, handle: Handle) -> npt.NDArray[Any]:
        """Returns the contents of an array that is on a device."""
        return self._numpy.get(handle)

    def compile(self, program: Program, options: CompileOptions) -> Launch:
        """Returns a function that launches a StableHLO program.

        ``plugrt_sdk.read_module(program)`` parses it. Call the function with
        ``arguments[parameter][device]``; it returns ``results[result][device]``, all of them
        handles. Raise `plugrt.errors.Unimplemented` for an operation that the device cannot do.
        """
        return self._numpy.compile(program, options)

    # Optional methods; each declares a capability. `plugrt_sdk.Backend` has more.

    def replicas(self) -> int:
        """Returns the largest number of replicas of a program (`pmap`)."""
        return self._numpy.replicas()

    def partitions(self) -> int:
        """Returns the largest number of partitions of a program (shardings)."""
        return self._numpy.partitions()

    def collectives(self) -> Collection[str]:
        """Returns the operations between devices, such as ``all_reduce``."""
        return self._numpy.collectives()

    def device_types(
        self, program: Program, options: CompileOptions
    ) -> tuple[Sequence[TensorType], Sequence[TensorType]] | None:
        """Returns the types on one device of a program with several partitions."""
        return self._numpy.device_types(program, options)

    def register_handler(self, target: str, handler: Handler) -> None:
        """Makes programs call a function of the host, as for `plugrt.pure_callback`."""
        self._numpy.register_handler(target, handler)

    def optimized_program(self, compiled: Compiled) -> Program:
        """Returns the optimised program, for users and for PyTorch/XLA, which needs it."""
        return self._numpy.optimized_program(compiled)
