"""`Client`: a started backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrt.errors import ArgumentTypeError, InvalidArgument
from plugrt.interface.backend_object import OF_CLIENTS, BackendObject, find_attribute
from plugrt.interface.buffer import Buffer, Shards, require_buffers
from plugrt.interface.checks import check_assignable, check_parts, is_iterable, require_callback
from plugrt.interface.device import Device
from plugrt.interface.memory import Memory
from plugrt.interface.promises import HostBufferSemantics, OptionValue

if TYPE_CHECKING:
    import numpy.typing as npt

    from plugrt.errors import PjrtError
    from plugrt.interface.capabilities import Capabilities
    from plugrt.interface.loaded_executable import LoadedExecutable
    from plugrt.interface.memory_layout import Layout
    from plugrt.interface.program import (
        CompileOptions,
        DeviceAssignment,
        Handler,
        HandlerStages,
        Program,
    )
    from plugrt.interface.steps import HeldForm
    from plugrt.interface.topology import Topology
    from plugrt.interface.values import TensorType


def _memory_of(device: Device, kind: str | None) -> Memory | None:
    if not isinstance(device, Device):
        raise ArgumentTypeError(f"{device!r:.60} is not a device")
    return None if kind is None else device.memory(kind)


class Client(BackendObject, ABC):
    """A started backend: its devices; compiles programs for them and moves data."""

    @property
    @abstractmethod
    def platform(self) -> str:
        """The platform name, such as ``cpu``, ``cuda``, ``tpu``."""

    @property
    @abstractmethod
    def platform_version(self) -> str:
        """The version of the platform's runtime, for display."""

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """The features that the backend declares."""

    @property
    def backend_name(self) -> str:
        return f"{self.platform!r} ({type(self).__module__.split('.')[0]})"

    @property
    def compiler_identity(self) -> str | None:
        """Equal for clients that can load each other's executables, given equal versions.

        A backend that is a library returns a value unique to its build. None if that is unknown:
        then no executable is kept between runs.
        """
        return f"{type(self).__module__}.{type(self).__qualname__}"

    @property
    def process_index(self) -> int:
        """The index of this process among those that share the client's devices."""
        return 0

    @property
    def process_count(self) -> int:
        """The number of processes that share the client's devices."""
        return len({d.process_index for d in self.devices()}) or 1

    @property
    def attributes(self) -> Mapping[str, OptionValue]:
        """Facts that the backend states of itself (``PJRT_Plugin_Attributes``)."""
        return {}

    @property
    def is_lost(self) -> bool:
        """Whether the process that has the devices is gone: calls raise `Unavailable`. Optional.

        Never true of a backend in this process, nor because of `close`.
        """
        return False

    def on_lost(self, callback: Callable[[PjrtError], object]) -> None:
        """Calls ``callback(error)`` once, on any thread, when it `is_lost`, or now. Optional.

        Raises `ArgumentTypeError` where ``callback`` cannot be called.
        """
        require_callback(callback, "on_lost")

    @abstractmethod
    def devices(self) -> Sequence[Device]:
        """All devices, including other processes', in id order. Always returns the same objects."""

    def addressable_devices(self) -> Sequence[Device]:
        """The devices of this process."""
        return [d for d in self.devices() if d.is_addressable]

    def lookup_device(self, device_id: int) -> Device:
        """Returns the device with that id; `InvalidArgument` lists the ids there are."""
        for device in self.devices() if isinstance(device_id, int | np.integer) else ():
            if device.id == device_id:
                return device
        raise InvalidArgument(
            f"{self.backend_name} has no device {device_id}; it has "
            f"{[d.id for d in self.devices()]}"
        )

    def default_device_assignment(self, num_replicas: int, num_partitions: int) -> DeviceAssignment:
        """Returns the backend's choice of devices; replica-major in id order by default."""
        from plugrt.interface.program import DeviceAssignment

        ids = [d.id for d in self.devices()]
        check_assignable(num_replicas, num_partitions, len(ids), self.backend_name)
        rows = (ids[r * num_partitions : (r + 1) * num_partitions] for r in range(num_replicas))
        return DeviceAssignment(tuple(map(tuple, rows)))

    @abstractmethod
    def compile(self, program: Program, options: CompileOptions) -> LoadedExecutable:
        """Compiles and loads a program."""

    def deserialize_executable(
        self, serialized: bytes, options: CompileOptions | None = None
    ) -> LoadedExecutable:
        """Loads what `Executable.serialize` gave, on a backend of the same version. Optional."""
        self._unimplemented("deserialize_executable")

    @abstractmethod
    def buffer_from_host(
        self,
        array: npt.NDArray[np.generic],
        device: Device,
        memory: Memory | None = None,
        semantics: HostBufferSemantics = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
        layout: Layout | None = None,
    ) -> Buffer:
        """Puts a host array (any strides, any alignment, also 0-d and empty) on a device.

        ``memory`` None is the device's default memory, ``layout`` None its default layout; others
        are for backends that declare ``memory_kinds`` and ``layout_put``. The backend keeps
        ``array`` alive for as long as ``semantics`` lets it use the memory. Raises
        `ResourceExhausted` when the device is out of memory and `UnsupportedDtype` for a dtype that
        it lacks.
        """

    def shards_from_host(
        self, arrays: Sequence[npt.NDArray[np.generic]], device: Device
    ) -> Sequence[Shards]:
        """Puts several host arrays on one device, as `buffer_from_host` puts one, in one call.

        Returns the `shards` of each, or what its launchers return instead. A backend overrides this
        where one call is cheaper than the loop.
        """
        if not is_iterable(arrays):
            raise ArgumentTypeError(f"shards_from_host takes several arrays; got {arrays!r:.60}")
        return [self.shards((self.buffer_from_host(array, device),)) for array in arrays]

    def buffers_from_host(
        self,
        arrays: Sequence[npt.NDArray[np.generic]],
        devices: Sequence[Device],
        memory_kind: str | None = None,
        semantics: HostBufferSemantics = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
    ) -> Shards:
        """Puts the parts of one array on several devices in one call, the i-th on ``devices[i]``.

        The parts have one shape and one dtype; the rules of `buffer_from_host` apply to each part.
        ``memory_kind`` None is the default memory of each device. Returns their `shards`. A backend
        overrides this where one call is cheaper than the loop.
        """
        check_parts(arrays, devices)
        return self.shards(
            [
                self.buffer_from_host(array, device, _memory_of(device, memory_kind), semantics)
                for array, device in zip(arrays, devices, strict=True)
            ]
        )

    def buffer_from_dlpack(self, capsule: Any, device: Device, stream: int | None = None) -> Buffer:
        """Takes a ``dltensor`` PyCapsule over as a buffer, without a copy. Optional.

        With ``stream``, from the device's `Device.stream_for_external_ready_events`, the contents
        are there when that stream's work is done; without it they are there already. A client
        whose devices have no such stream is never passed one.
        """
        self._unimplemented("buffer_from_dlpack")

    def shards(self, buffers: Sequence[Buffer]) -> Shards:
        """Returns the buffers of one array in the form with which launches are fastest.

        ``execute`` accepts any sequence of buffers; a backend that would have to join them at each
        launch does it here, once.
        """
        return require_buffers(buffers)

    def copy_between_processes(
        self,
        type: TensorType,
        copies: Sequence[tuple[Device, Device]],
        buffers: Sequence[Buffer],
        memory_kind: str | None = None,
    ) -> Sequence[Buffer]:
        """Copies buffers of one type to devices of other processes, without waiting. Optional.

        ``copies`` has the source and the destination device of each buffer. All processes of the
        run make the same calls, in the same order, also processes that have none of the devices.
        ``buffers`` are the sources in this process. Returns the buffers of the copies whose
        destination is in this process, in memories of ``memory_kind`` (default: the devices' own).
        A copy may have both devices in one process. Raises `FailedPrecondition`, which names the
        setting, where processes are not configured for it; `Capabilities.copies_between_processes`
        is then False.
        """
        self._unimplemented("copying arrays to devices of other processes")

    def held_form(self, type: TensorType, memory: Memory) -> HeldForm:
        """Returns how objects of launches become `Shards` of this type and memory, and are read.

        For backends whose `LoadedExecutable.launcher` returns other objects than `Shards`. The
        compiled core reads by a view of the memory only with the capability ``zero_copy_get``: no
        transfer guard looks at these reads.
        """
        self._unimplemented("held_form")

    def register_handler(self, target: str, handler: Handler | int | HandlerStages) -> None:
        """Makes programs that are compiled from now on call a function. Optional.

        For custom calls of ``target`` with ``api_version = 4``, XLA's typed FFI. An integer is the
        address of a C function of type ``XLA_FFI_Handler``, which gets addresses of the device's
        memory; a Python function gets arrays of the host's, and is `Unimplemented` where neither
        views nor copies of them can be had. The handler stays for the life of the process, or until
        `unregister_handler`. Raises `AlreadyExists` or `InvalidArgument` where another has that
        target.
        """
        self._unimplemented("register_handler")

    def unregister_handler(self, target: str) -> None:
        """Has programs that are compiled from now on not call the handler. Optional.

        Those that were compiled before keep it. Raises `NotFound` where there is none.
        """
        self._unimplemented("unregister_handler")

    def register_handler_type(self, name: str, type_id: int, type_info: int | None = None) -> None:
        """Registers a type for the states of handlers in C. Optional, with ``custom_calls``.

        ``type_id`` is the address of an ``XLA_FFI_TypeId``, which is written where it is 0, and
        ``type_info`` is the address of an ``XLA_FFI_TypeInfo``, which holds the function that
        deletes a state. Both stay for the life of the process. Raises `AlreadyExists` or
        `InvalidArgument` where the name has another id.
        """
        self._unimplemented("register_handler_type")

    def topology(self) -> Topology:
        """Returns the topology of the client's devices. Optional."""
        self._unimplemented("topology")

    def default_layout(self, type: TensorType) -> Layout:
        """Returns the default layout of arrays with that shape and dtype. Optional.

        It belongs to ``layouts``.
        """
        self._unimplemented("default_layout")

    if not TYPE_CHECKING:  # for a type checker, a missing name is an error

        def __getattr__(self, name: str) -> Any:
            return find_attribute(self, name, OF_CLIENTS)

    def device_count(self) -> int:
        """Returns the number of `devices`."""
        return len(self.devices())

    def local_device_count(self) -> int:
        """Returns the number of `addressable_devices`."""
        return len(self.addressable_devices())

    def local_devices(self) -> Sequence[Device]:
        """Returns the `addressable_devices`."""
        return self.addressable_devices()

    def host_id(self) -> int:
        """Returns the `process_index`."""
        return self.process_index

    def task_id(self) -> int:
        """Returns the `process_index`."""
        return self.process_index

    def device_from_local_hardware_id(self, local_hardware_id: int) -> Device:
        """Returns the device of this process with that id; `InvalidArgument` lists them."""
        devices = self.addressable_devices()
        if isinstance(local_hardware_id, int):
            for device in devices:
                if device.local_hardware_id == local_hardware_id:
                    return device
        raise InvalidArgument(
            f"{self.backend_name} has no device of the local hardware id {local_hardware_id!r:.40}"
            f"; it has {[d.local_hardware_id for d in devices]}"
        )

    @abstractmethod
    def close(self) -> None:
        """Frees the backend's resources once live buffers are gone. A second call does nothing."""
