"""`CpuClient`: jaxlib's CPU client behind plugrt's interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from plugrt.interface import (
    Capabilities,
    Client,
    CompileOptions,
    Device,
    HostBufferSemantics,
    Memory,
    OptionValue,
    Program,
    TensorType,
)

from plugrt_cpu import adapter
from plugrt_cpu.buffer import CpuBuffer
from plugrt_cpu.device import CpuDevice
from plugrt_cpu.errors import translated
from plugrt_cpu.executable import CpuExecutable, CpuLoadedExecutable


class CpuClient(Client):
    """Devices that are the cores of this machine."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        self._devices: tuple[CpuDevice, ...] = tuple(
            CpuDevice(self, d, range(3 * i, 3 * i + 3)) for i, d in enumerate(raw.devices())
        )

    @classmethod
    def create(cls, options: Mapping[str, OptionValue], distributed: Any | None) -> CpuClient:
        """Starts jaxlib's CPU client with these options."""
        return cls(
            adapter._jax.get_tfrt_cpu_client(
                asynchronous=options.get("asynchronous", True),
                num_devices=options.get("num_devices", 1),
            )
        )

    @property
    def platform(self) -> str:
        return "cpu"

    @property
    def platform_version(self) -> str:
        return str(self.raw.platform_version)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(asynchronous_dispatch=True, donation=True)

    def devices(self) -> Sequence[CpuDevice]:
        return self._devices

    def compile(self, program: Program, options: CompileOptions) -> CpuLoadedExecutable:
        devices = (self._devices[0],)
        with translated():
            raw = self.raw.compile_and_load(
                program.code,
                adapter._jax.DeviceList(tuple(d.raw for d in devices)),
                adapter._jax.CompileOptions(),
            )
        executable = CpuExecutable(raw, program.name, 1, 1)
        return CpuLoadedExecutable(self, executable, devices)

    def buffer_from_host(
        self,
        array: npt.NDArray[Any],
        device: Device,
        memory: Memory | None = None,
        semantics: HostBufferSemantics = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
    ) -> CpuBuffer:
        array = np.asarray(array)
        place = (memory or device.default_memory()).place  # type: ignore[attr-defined]
        raw = adapter._jax.batched_device_put(
            adapter.Aval(array.shape, array.dtype),
            place.sharding,
            [array],
            [place.devices[0].raw],
            True,
            True,
            adapter._jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
            enable_x64=True,
        )
        return CpuBuffer(raw, TensorType(array.shape, array.dtype), place)

    def close(self) -> None:
        self.raw = None
