"""`LoadedExecutable`: a program on its devices. `execute` launches it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from plugrt import interface
from plugrt.capi.abi import proto_wire
from plugrt.capi.abi._abi import ffi
from plugrt.capi.buffers.buffer_spec import BufferSpec
from plugrt.capi.buffers.donated_arguments import DonatedArguments
from plugrt.capi.devices.devices import ClientBase, Device
from plugrt.capi.library.client_handle import ClientHandle
from plugrt.capi.library.events import Event
from plugrt.capi.loading.function_table import Slot
from plugrt.capi.programs.executable import Executable, Known
from plugrt.capi.programs.launch_errors import LaunchChecks
from plugrt.capi.programs.program_launches import ProgramLaunches
from plugrt.errors import InvalidReply, Unimplemented
from plugrt.frames.argument_errors import PYTHON_ERRORS, refuse_call, with_argument_errors
from plugrt.interface import DeviceAssignment, ExecuteOptions, Shards
from plugrt.lifetime.waiter import ended
from plugrt.native.finalizers import finish_pending
from plugrt.native.native_core import core

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

_get_signature = attrgetter("_spec.signature")

_FUNCTIONS_OF_CORE = (
    "LoadedExecutable_Execute", "Event_Await", "Event_Destroy", "Error_Destroy"
)  # fmt: skip


class LoadedExecutable(ProgramLaunches, interface.LoadedExecutable):
    """A ``PJRT_LoadedExecutable`` that this object owns."""

    __slots__ = ("__weakref__",)

    def __init__(
        self,
        client: ClientBase,
        pointer: CData,
        donates: bool,
        names_layouts: bool = True,
        known: Known | None = None,
    ) -> None:
        handle = client.handle()
        library = handle.library
        self.client = client
        self._handle = handle
        self._pointer = handle.own("LoadedExecutable_Destroy", "executable", pointer)
        args = library.call("LoadedExecutable_GetExecutable", loaded_executable=pointer)
        self.executable = Executable(
            library,
            args.executable,
            client.origin,
            (handle, self._pointer),
            handle.exiting,
            handle if names_layouts else None,
            known,
        )
        self.addressable_devices = read_addressable_devices(client, pointer)
        self._faults = LaunchChecks(handle, self.executable, self.addressable_devices)
        self._one_device = len(self.addressable_devices) == 1
        self._specs = [
            result_specs(handle, self.executable, device) for device in self.addressable_devices
        ]
        self._first_specs = self._specs[0] if self._specs else []
        self._only_spec = self._first_specs[0] if len(self._first_specs) == 1 else None
        self._checked_signature = None
        self._launch = library.get_hot_slot("LoadedExecutable_Execute")
        handle.launchers.keep(self, None)
        self._donation = None
        if donates:
            self._donation = DonatedArguments(self.executable)
            handle.donates = True
        self._deleted = False
        self._arity = None
        self._launch_args = []
        self._launch_ids = None
        self._parts = None
        self._core = self._make_core()

    def _make_core(self) -> object:
        """Returns the core's object for launches; None if Python launches."""
        slots = self._handle.library.slots
        if core is None or not self.addressable_devices:
            return None
        if not all(isinstance(slots[name], ffi.CData) for name in _FUNCTIONS_OF_CORE):
            return None
        address = int(ffi.cast("uintptr_t", self._pointer))
        specs = [spec for of_device in self._specs for spec in of_device]
        return core.Executable(
            self._handle.core, address, self._pointer, len(self.addressable_devices), tuple(specs)
        )

    def refuse(self, stub: Slot) -> None:
        """Replaces the library's function by ``stub``, which raises."""
        self._launch = stub

    @property
    def backend_name(self) -> str:
        return self.client.backend_name

    def execute(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> Sequence[Shards]:
        finish_pending()
        # The usual case: buffers of the same signatures as at the last checked launch. Signatures
        # are interned, so this compares identities; they contain the device, so no other client's
        # buffer passes.
        try:
            fit = [*map(_get_signature, arguments)] == self._checked_signature
        except (AttributeError, TypeError):
            fit = False
        if fit and options is None:
            return self._launch_unchecked(arguments)
        try:
            if self._one_device or options is not None or len(arguments) != self._arity:
                return self._execute(arguments, options)
            return self._execute_on_all(arguments)
        except PYTHON_ERRORS as error:
            refuse_call(self.execute, error, arguments=arguments, options=options)

    @property
    def launcher(self) -> Callable[[Sequence[Shards]], Sequence[Shards]]:
        if self._core is not None:
            donation = self._donation
            launcher: Callable[[Sequence[Shards]], Sequence[Shards]] = core.Launcher(
                self._core, self, donation.mark if donation else None
            )
            return launcher
        return self._launch_unchecked if self._one_device else self.execute

    @with_argument_errors
    def execute_with_events(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> tuple[Sequence[Shards], list[Event]]:
        """As `execute`, and an event for each device that is ready when its part is done."""
        events = ffi.new("PJRT_Event*[]", len(self.addressable_devices))
        if self._one_device or options is not None or len(arguments) != self._arity:
            results = self._execute(arguments, options, events)
        else:
            results = self._execute_on_all(arguments, events)
        if not all(events):
            raise self._missing_event()
        return results, [Event(self._handle, event) for event in events]

    @with_argument_errors
    def execute_with_wait(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> tuple[Sequence[Shards], Callable[[], None]]:
        results, events = self.execute_with_events(arguments, options)
        if self._one_device and events[0].has_happened():  # the library ran it within this call
            return results, ended
        return results, partial(_await_all, events)

    def device_assignment(self) -> DeviceAssignment:
        """The devices of all replicas and partitions, other processes' too (PJRT 0.79)."""
        return read_device_assignment(self._handle, self._pointer)

    def logical_device_ids(self) -> list[tuple[int, int]]:
        """(replica, partition) of each of `addressable_devices` (PJRT 0.96)."""
        return read_logical_device_ids(self._handle, self._pointer)

    def delete(self) -> None:
        if not self._deleted:
            self._deleted = True
            if self._core is not None:
                self._core.arity = -1
            self._handle.library.call("LoadedExecutable_Delete", executable=self._pointer)
            self._arity = self._checked_signature = None
            self._launch_args.clear()

    def is_deleted(self) -> bool:
        return self._deleted


def _await_all(events: list[Event]) -> None:
    for event in events:
        event.wait_for_end()


def read_addressable_devices(client: ClientBase, pointer: CData) -> tuple[Device, ...]:
    """Returns the devices of this process that a ``PJRT_LoadedExecutable`` runs on."""
    library = client.handle().library
    args = library.call("LoadedExecutable_AddressableDevices", executable=pointer)
    found = library.distinct_devices(args, "addressable_devices", "num_addressable_devices")
    return tuple(client.device_at(p, args) for p in found)


def read_device_assignment(handle: ClientHandle, pointer: CData) -> DeviceAssignment:
    """Returns the devices of all replicas and partitions, other processes' too (PJRT 0.79)."""
    library = handle.library
    args = library.call("LoadedExecutable_GetDeviceAssignment", executable=pointer)
    encoded = library.owned_bytes(
        args,
        "serialized_bytes",
        "serialized_device_assignment",
        "serialized_device_assignment_deleter",
    )
    with library.reading(args, "serialized_bytes"):
        return proto_wire.read_device_assignment(encoded)


def read_logical_device_ids(handle: ClientHandle, pointer: CData) -> list[tuple[int, int]]:
    """Returns (replica, partition) of each device of this process (PJRT 0.96)."""
    library = handle.library
    args = library.call("LoadedExecutable_AddressableDeviceLogicalIds", executable=pointer)
    ids = library.items(
        args, "addressable_device_logical_ids", "num_addressable_device_logical_ids"
    )
    return [(i.replica, i.partition) for i in ids]


def result_specs(handle: ClientHandle, executable: Executable, device: Device) -> list[BufferSpec]:
    """Returns the specs of the results on a device: types and memories."""
    types = executable.output_types
    try:
        memory_kinds = executable.output_memory_kinds
    except Unimplemented:
        memory_kinds = [""] * len(types)
    if len(memory_kinds) != len(types):
        raise InvalidReply(
            f"{handle.library.owner} states {len(types)} results of "
            f"{executable.name!r} and the memories of {len(memory_kinds)}"
        )
    memories = {memory.kind: memory for memory in device.memories()}
    return [
        BufferSpec(handle, t.shape, t.dtype, device, memories.get(memory_kind), t.layout)
        for t, memory_kind in zip(types, memory_kinds, strict=True)
    ]
