"""The device. NumPy stands in for it: replace each method's body by calls to your own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
from plugrt.interface import CompileOptions, Program
from plugrt_sdk import Handle, Launch
from plugrt_sdk.numpy_backend.backend import NumpyBackend


class MyChipBackend(NumpyBackend):
    """One or several devices. The arguments of ``__init__`` are create options: ``num_devices``.

    When the four methods are yours, so is the class: let it inherit from `plugrt_sdk.Backend`. What
    else `NumpyBackend` has (replicas, partitions, collectives, donation) are optional methods, each
    of which declares a capability; the page of `Backend` in plugrt's documentation lists them all.
    """

    platform, version = "my-chip", "0.1.0"

    def devices(self) -> Sequence[str]:
        """Returns the kind of each device, in the order of their ids."""
        return ["my-chip (NumPy)"] * len(super().devices())

    def put(self, array: npt.NDArray[Any], device: int) -> Handle:
        """Copies a host array to a device and returns a handle: any object of yours."""
        return super().put(array, device)

    def get(self, handle: Handle) -> npt.NDArray[Any]:
        """Returns the contents of an array that is on a device."""
        return super().get(handle)

    def compile(self, program: Program, options: CompileOptions) -> Launch:
        """Returns a function that launches a StableHLO program.

        ``plugrt_sdk.read_module(program)`` parses it. The function takes
        ``arguments[parameter][device]`` and returns ``results[result][device]``, all of them
        handles. Raise `plugrt.errors.Unimplemented` for what the device cannot do.
        """
        return super().compile(program, options)
