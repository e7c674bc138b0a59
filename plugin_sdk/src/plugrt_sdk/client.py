"""`BackendClient`: a `plugrt.interface.Client` over a `Backend`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.errors import FailedPrecondition, InvalidArgument
from plugrt.interface import (
    Buffer,
    Capabilities,
    Client,
    CompileOptions,
    Device,
    HostBufferSemantics,
    Memory,
    Program,
    TensorType,
)
from plugrt.programs.loading import parsed
from plugrt_sdk.backend import Backend
from plugrt_sdk.buffer import BackendBuffer
from plugrt_sdk.executable import BackendExecutable, BackendLoadedExecutable


class BackendMemory(Memory):
    """The one memory of a device."""

    __slots__ = ("_device",)

    def __init__(self, device: BackendDevice) -> None:
        self._device = device

    @property
    def id(self) -> int:
        return self._device.id

    @property
    def kind(self) -> str:
        return "device"

    @property
    def client(self) -> BackendClient:
        return self._device.client

    def addressable_by_devices(self) -> Sequence[Device]:
        return [self._device]


class BackendDevice(Device):
    """A device that a backend named."""

    __slots__ = ("__weakref__", "_client", "_id", "_kind", "_memory")

    def __init__(self, client: BackendClient, index: int, kind: str) -> None:
        self._client = client
        self._id = index
        self._kind = kind
        self._memory = BackendMemory(self)

    @property
    def id(self) -> int:
        return self._id

    @property
    def client(self) -> BackendClient:
        return self._client

    @property
    def kind(self) -> str:
        return self._kind

    def memories(self) -> Sequence[Memory]:
        return [self._memory]

    def default_memory(self) -> Memory:
        return self._memory


class BackendClient(Client):
    """The client of a `Backend`. Launches are synchronous: errors raise where they happen."""

    def __init__(self, backend: Backend) -> None:
        if not backend.platform:
            raise InvalidArgument(f"{type(backend).__qualname__} must set the attribute 'platform'")
        self.backend = backend
        """The author's object."""
        self._devices = [BackendDevice(self, i, kind) for i, kind in enumerate(backend.devices())]
        self._live = 0
        self._closed = False
        several = len(self._devices) > 1
        self._capabilities = Capabilities(
            device_to_device_copy=True,
            multiple_devices=several,
            collectives=several,
            strided_put=True,
            stablehlo_current_version=backend.stablehlo_version,
        )

    @property
    def platform(self) -> str:
        return self.backend.platform

    @property
    def platform_version(self) -> str:
        return self.backend.version

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    def devices(self) -> Sequence[BackendDevice]:
        return self._devices

    def buffer_from_host(
        self,
        array: npt.NDArray[Any],
        device: Device,
        memory: Memory | None = None,
        semantics: HostBufferSemantics = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
    ) -> BackendBuffer:
        ours = self.our_device(device)
        if memory is not None and memory is not ours.default_memory():
            raise InvalidArgument(f"{ours!r} has one memory, {ours.default_memory()!r}")
        host = np.ascontiguousarray(array).reshape(array.shape)
        host.flags.writeable = False
        kind = TensorType(host.shape, host.dtype)
        return BackendBuffer(self, self.backend.put(host, ours.id), kind, ours)

    def compile(self, program: Program, options: CompileOptions) -> BackendLoadedExecutable:
        self.require_open()
        assignment = options.device_assignment or self.default_device_assignment(
            options.num_replicas, options.num_partitions
        )
        devices = [self.our_device(self.lookup_device(i)) for i in assignment.flat]
        _, inputs, outputs = parsed(program)
        launch = self.backend.compile(program, options)
        executable = BackendExecutable(program.name, options, tuple(inputs), tuple(outputs))
        return BackendLoadedExecutable(self, executable, devices, launch)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._close_if_idle()

    # --- what buffers and executables tell ----------------------------------------------------

    def require_open(self) -> None:
        """Raises `FailedPrecondition` after `close`."""
        if self._closed:
            raise FailedPrecondition(f"the client of {self.backend_name} was closed")

    def adopted(self) -> None:
        """Counts a buffer that was made."""
        self._live += 1

    def released(self) -> None:
        """Counts a buffer that is gone; the last one of a closed client closes the backend."""
        self._live -= 1
        self._close_if_idle()

    def _close_if_idle(self) -> None:
        if self._closed and not self._live:
            self.backend.close()

    def our_device(self, device: Device) -> BackendDevice:
        """Returns a device if it is this client's; raises `InvalidArgument` if not."""
        self.require_open()
        if not isinstance(device, BackendDevice) or device.client is not self:
            raise InvalidArgument(f"{device!r} is not a device of {self.backend_name}")
        return device

    def our_buffer(self, buffer: Buffer, device: BackendDevice, what: str) -> BackendBuffer:
        """Returns a buffer if it is this client's and lies on ``device``."""
        if not isinstance(buffer, BackendBuffer) or buffer.device is not device:
            raise InvalidArgument(f"{what} must lie on {device!r}; it lies on {buffer.device!r}")
        return buffer
