"""The device: the four methods of a backend, over the C++ runtime."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy.typing as npt
from plugrt.errors import InvalidArgument
from plugrt.interface import CompileOptions, Handler, Program, TensorType
from plugrt_numpy.backend import NumpyBackend
from plugrt_numpy.device_launches import DeviceOperations, compile_for_device
from plugrt_sdk import Compiled, Launch, SavesPrograms

from my_chip.kernels import kernels
from my_chip.runtime import DeviceArray, load_runtime


class MyChipBackend(SavesPrograms):
    """One or several devices. The arguments of ``__init__`` are create options.

    ``numpy`` is whether NumPy runs the operations that have no kernel, with copies to the host and
    back, and programs over several devices. Without it they are refused.
    """

    platform, version = "my-chip", "0.1.0"

    def __init__(self, num_devices: int | str = 1, numpy: bool | str = True) -> None:
        self._runtime = runtime = load_runtime()
        self._numpy = NumpyBackend(num_devices)
        self._count = len(self._numpy.devices())
        if self._count > runtime.most_devices:
            raise InvalidArgument(
                f"num_devices is {num_devices}; the runtime has at most {runtime.most_devices}"
            )
        self._handlers: dict[str, Handler] = {}
        uses_numpy = str(numpy).lower() in ("1", "true")
        self._most = self._count if uses_numpy else 1
        self._operations = DeviceOperations(
            kernels(runtime), runtime.put, runtime.get, uses_numpy=uses_numpy
        )
        self.stablehlo_version = self._numpy.stablehlo_version

    def devices(self) -> Sequence[str]:
        return ["my-chip (host memory)"] * self._count

    def put(self, array: npt.NDArray[Any], device: int) -> DeviceArray:
        return self._runtime.put(array, device)

    def get(self, handle: DeviceArray) -> npt.NDArray[Any]:
        return self._runtime.get(handle)

    def compile(self, program: Program, options: CompileOptions) -> Launch:
        return compile_for_device(program, options, self._operations, dict(self._handlers))

    def copy(self, handle: DeviceArray, device: int) -> DeviceArray:
        return self._runtime.copy(handle, device)

    def memory_stats(self, device: int) -> Mapping[str, int]:
        found = self._runtime.counters(device)
        used, peak = found["bytes_in_use"], found["peak_bytes_in_use"]
        return {
            "bytes_in_use": used,
            "peak_bytes_in_use": peak,
            "num_allocs": found["allocations"],
        }

    def replicas(self) -> int:
        return self._most

    def partitions(self) -> int:
        return self._most

    def collectives(self) -> Collection[str]:
        return self._numpy.collectives() if self._most > 1 else ()

    def device_types(
        self, program: Program, options: CompileOptions
    ) -> tuple[Sequence[TensorType], Sequence[TensorType]]:
        return self._numpy.device_types(program, options)

    def register_handler(self, target: str, handler: Handler) -> None:
        self._handlers[target] = handler

    def optimized_program(self, compiled: Compiled) -> Program:
        return self._numpy.optimized_program(compiled)
