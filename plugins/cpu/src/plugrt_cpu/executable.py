"""`CpuExecutable` and `CpuLoadedExecutable`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plugrt.interface import ExecuteOptions, Executable, LoadedExecutable, Shards, TensorType

from plugrt_cpu import adapter
from plugrt_cpu.buffer import CpuBuffer
from plugrt_cpu.device import CpuDevice, Place
from plugrt_cpu.errors import translate

if TYPE_CHECKING:
    from plugrt_cpu.client import CpuClient


class CpuExecutable(Executable):
    """What was compiled."""

    __slots__ = ("_name", "_partitions", "_replicas", "_types", "raw")

    def __init__(self, raw: Any, name: str, replicas: int, partitions: int) -> None:
        self.raw = raw
        self._name = name
        self._replicas = replicas
        self._partitions = partitions
        _, results = adapter.program_shape(raw)
        self._types = tuple(TensorType(tuple(s.dimensions()), s.numpy_dtype()) for s in results)

    @property
    def name(self) -> str:
        return self._name

    @property
    def num_replicas(self) -> int:
        return self._replicas

    @property
    def num_partitions(self) -> int:
        return self._partitions

    @property
    def output_types(self) -> Sequence[TensorType]:
        return self._types


class CpuLoadedExecutable(LoadedExecutable):
    """A launchable program."""

    __slots__ = ("_client", "_devices", "_executable", "_handlers", "_results", "raw")

    def __init__(
        self, client: CpuClient, executable: CpuExecutable, devices: tuple[CpuDevice, ...]
    ) -> None:
        self.raw = executable.raw
        self._client = client
        self._executable = executable
        self._devices = devices
        place = devices[0].default_memory().place
        self._results = [(t, place) for t in executable.output_types]
        self._handlers = [
            adapter.result_handler(adapter.Aval(t.shape, t.dtype), place.sharding)
            for t in executable.output_types
        ]

    @property
    def client(self) -> CpuClient:
        return self._client

    @property
    def executable(self) -> CpuExecutable:
        return self._executable

    @property
    def addressable_devices(self) -> Sequence[CpuDevice]:
        return self._devices

    def execute(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> Sequence[Shards]:
        try:
            raws = self.raw.execute_sharded([a[0].raw for a in arguments]).consume_with_handlers(
                self._handlers, strict=False
            )
        except (RuntimeError, ValueError) as error:
            raise translate(error) from error
        return [
            (CpuBuffer(raw, t, p),) for raw, (t, p) in zip(raws, self._results, strict=True)
        ]

    def delete(self) -> None:
        self.raw = None

    def is_deleted(self) -> bool:
        return self.raw is None
