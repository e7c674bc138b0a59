"""`LoadedExecutable`: a program on its devices. `execute` launches it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from plugrt import interface
from plugrt.argument_errors import PYTHON_ERRORS, refuse_call, with_argument_errors
from plugrt.capi.abi import proto_wire
from plugrt.capi.abi._abi import ffi
from plugrt.capi.buffer import Buffer
from plugrt.capi.buffer_spec import BufferSpec
from plugrt.capi.devices import ClientBase, Device
from plugrt.capi.donation import Donation
from plugrt.capi.events import Event
from plugrt.capi.executable import Executable
from plugrt.capi.launch_args import LaunchArgs
from plugrt.capi.loading.function_table import Slot
from plugrt.errors import (
    DeletedBuffer,
    FailedPrecondition,
    InvalidArgument,
    InvalidReply,
    PjrtError,
    Unimplemented,
)
from plugrt.interface import DeviceAssignment, ExecuteOptions, Shards

_unpack = ffi.unpack
_new: Any = object.__new__
_get_signature = attrgetter("_spec.signature")
_get_pointer = attrgetter("_pointer")


class LoadedExecutable(interface.LoadedExecutable):
    """A ``PJRT_LoadedExecutable`` that this object owns.

    Argument structs are prepared once for each number of arguments and kept in a free list, so
    that a launch fills in pointers only; a launch from another thread takes a struct of its own.
    """

    __slots__ = (
        "__weakref__",
        "_arity",
        "_checked_signature",
        "_client",
        "_deleted",
        "_devices",
        "_donation",
        "_executable",
        "_first_specs",
        "_handle",
        "_launch",
        "_launch_args",
        "_one_device",
        "_only_spec",
        "_pointer",
        "_specs",
    )  # fmt: skip

    def __init__(self, client: ClientBase, pointer: Any, donates: bool) -> None:
        handle = client.handle()
        library = handle.library
        self._client = client
        self._handle = handle
        self._pointer = handle.own("LoadedExecutable_Destroy", "executable", pointer)
        args = library.call("LoadedExecutable_GetExecutable", loaded_executable=pointer)
        self._executable = Executable(
            library, args.executable, client.origin, (handle, self._pointer), handle.exiting
        )
        args = library.call("LoadedExecutable_AddressableDevices", executable=pointer)
        found = library.handles(args, "addressable_devices", "num_addressable_devices")
        self._devices: tuple[Device, ...] = tuple(client.device_at(p, args) for p in found)
        self._one_device = len(self._devices) == 1
        self._specs = [self._output_specs(device) for device in self._devices]
        self._first_specs = self._specs[0] if self._specs else []
        self._only_spec = self._first_specs[0] if len(self._first_specs) == 1 else None
        self._checked_signature: list[Any] | None = None
        """The arguments' signatures at the last checked launch, on one device."""
        self._launch = library.get_hot_slot("LoadedExecutable_Execute")
        handle.launchers.add(self)
        self._donation = Donation(self._executable) if donates else None
        self._deleted = False
        self._arity: int | None = None
        self._launch_args: list[LaunchArgs] = []

    def refuse(self, stub: Slot) -> None:
        """Replaces the library's function by ``stub``, which raises."""
        self._launch = stub

    def _output_specs(self, device: Device) -> list[BufferSpec]:
        """Returns the specs of the results on a device: types and memories."""
        types = self._executable.output_types
        try:
            memory_kinds = self._executable.output_memory_kinds
        except Unimplemented:
            memory_kinds = [""] * len(types)
        if len(memory_kinds) != len(types):
            raise InvalidReply(
                f"{self._handle.library.owner} states {len(types)} results of "
                f"{self._executable.name!r} and the memories of {len(memory_kinds)}"
            )
        memories = {memory.kind: memory for memory in device.memories()}
        return [
            BufferSpec(self._handle, t.shape, t.dtype, device, memories.get(memory_kind))
            for t, memory_kind in zip(types, memory_kinds, strict=True)
        ]

    @property
    def client(self) -> ClientBase:
        return self._client

    @property
    def backend_name(self) -> str:
        return self._client.backend_name

    @property
    def executable(self) -> Executable:
        return self._executable

    @property
    def addressable_devices(self) -> Sequence[Device]:
        return self._devices

    def execute(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> Sequence[Shards]:
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
        return self._launch_unchecked if self._one_device else self.execute

    def _launch_unchecked(self, arguments: Sequence[Shards]) -> Sequence[Shards]:
        """Launches on one device; the caller guarantees the arguments' number, types and client."""
        try:
            launch_args = self._launch_args.pop()
        except IndexError:
            if self._arity is None:
                return self._execute(arguments, None)
            launch_args = LaunchArgs(self._pointer, 1, len(arguments), len(self._first_specs))
        args, block, fixed, pristine, places, everything, produced = launch_args.hot
        block[fixed] = pristine
        try:
            places[everything] = [*map(_get_pointer, arguments)]
        except (TypeError, ValueError, AttributeError):
            return self._execute(arguments, None)  # which finds the fault, if there is one
        error = self._launch(args)
        if error:
            raise self._launch_error(error, arguments)
        spec = self._only_spec
        if spec is not None:
            pointer = produced[0]
            if not pointer:
                raise self._missing_result_error(launch_args)
            result = _new(Buffer)  # as calling the class, in two thirds of the time
            result._pointer = pointer
            result._spec = spec
            results = [result]
        else:
            pointers = _unpack(*launch_args.produced)
            if not all(pointers):
                raise self._missing_result_error(launch_args)
            results = [*map(Buffer, pointers, self._first_specs)]
        self._launch_args.append(launch_args)
        if self._donation:
            self._donation.mark(arguments)
        return results

    def _execute_on_all(
        self, arguments: Sequence[Shards], events: Any = ffi.NULL
    ) -> Sequence[Shards]:
        """Launches on several devices, without checking types."""
        if self._donation:
            self._donation.refuse_repeated(arguments)
        handle = self._handle
        try:
            launch_args = self._launch_args.pop()
        except IndexError:
            launch_args = LaunchArgs(
                self._pointer, len(self._devices), len(arguments), len(self._first_specs)
            )
        everything = launch_args.all
        launch_args.restore()
        try:
            columns = zip(*arguments, strict=True)
            for row, column in zip(launch_args.arguments, columns, strict=bool(arguments)):
                row[everything] = [b._pointer for b in column if b._spec.handle is handle]
        except (TypeError, ValueError, AttributeError):
            raise self._argument_error(arguments) from None
        launch_args.args.device_complete_events = events
        error = self._launch(launch_args.args)
        if error:
            raise self._launch_error(error, arguments)
        count = launch_args.produced[1]
        rows = [_unpack(row, count) for row in launch_args.outputs]
        if not all(map(all, rows)):
            raise self._missing_result_error(launch_args)
        made = [
            [Buffer(p, s) for p, s in zip(row, specs)]  # noqa: B905 - hot
            for row, specs in zip(rows, self._specs)  # noqa: B905 - hot
        ]
        self._launch_args.append(launch_args)
        if self._donation:
            self._donation.mark(arguments)
        return list(zip(*made))  # noqa: B905 - hot

    def _launch_error(self, error: Any, arguments: Sequence[Shards]) -> Exception:
        """Returns the exception of a launch; a concurrent deletion takes precedence."""
        reported = self._handle.library.take_error(error)
        if self._deleted:
            return FailedPrecondition(f"the executable {self._executable.name!r} was deleted")
        return self._find_deleted(arguments) or reported

    def _missing_result_error(self, launch_args: LaunchArgs) -> InvalidReply:
        """Returns the exception of a launch that lacks results, and frees the others."""
        handle, missing = self._handle, ""
        for device, specs in enumerate(self._specs):
            for i, (pointer, spec) in enumerate(
                zip(launch_args.results(device), specs, strict=True)
            ):
                if pointer:
                    Buffer(pointer, spec)
                else:
                    missing = missing or f"output_lists[{device}][{i}]"
        return handle.library.invalid(
            launch_args.args, f"it gave no {missing} (NULL) for {self._executable.name!r}"
        )

    @with_argument_errors
    def execute_with_events(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> tuple[Sequence[Shards], list[Event]]:
        """As `execute`, and an event for each device that is ready when its part is done."""
        events = ffi.new("PJRT_Event*[]", len(self._devices))
        if self._one_device or options is not None or len(arguments) != self._arity:
            results = self._execute(arguments, options, events)
        else:
            results = self._execute_on_all(arguments, events)
        if not all(events):
            raise InvalidReply(
                f"{self._handle.library.owner} launched {self._executable.name!r}, but gave no "
                "device_complete_events (NULL)"
            )
        return results, [Event(self._handle, event) for event in events]

    @with_argument_errors
    def execute_with_wait(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> tuple[Sequence[Shards], Callable[[], None]]:
        results, events = self.execute_with_events(arguments, options)
        return results, partial(_await_all, events)

    def _execute(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None, events: Any = None
    ) -> Sequence[Shards]:
        """Launches with all arguments checked: several devices, options, or the first time."""
        if self._deleted:
            raise FailedPrecondition(f"the executable {self._executable.name!r} was deleted")
        refusal = self._find_fault(arguments)
        if refusal is not None:
            raise refusal
        devices = len(self._devices)
        kept = options.non_donatable_input_indices if options else ()
        if self._donation and devices > 1:
            self._donation.refuse_repeated(arguments, kept)
        launch_args = LaunchArgs(self._pointer, devices, len(arguments), len(self._first_specs))
        for i in range(devices):
            launch_args.fill([shards[i]._pointer for shards in arguments], i)  # type: ignore[attr-defined]
        if options is not None:
            launch_args.set_options(options)
        if events is not None:
            launch_args.args.device_complete_events = events
        error = self._launch(launch_args.args)
        if error:
            raise self._launch_error(error, arguments)
        if not all(all(launch_args.results(i)) for i in range(devices)):
            raise self._missing_result_error(launch_args)
        self._arity = len(arguments)
        made = [
            [Buffer(p, s) for p, s in zip(launch_args.results(i), self._specs[i], strict=True)]
            for i in range(devices)
        ]
        if self._one_device and options is None:
            self._checked_signature = [shards[0]._spec.signature for shards in arguments]  # type: ignore[attr-defined]
        if self._donation:
            self._donation.mark(arguments, kept)
        return made[0] if self._one_device else list(zip(*made, strict=True))

    def _argument_error(self, arguments: Sequence[Shards]) -> Exception:
        fault = self._find_fault(arguments)
        return fault or InvalidArgument("the arguments of the launch changed while it was made")

    def _find_fault(self, arguments: Sequence[Shards]) -> Exception | None:
        """Returns the exception for invalid arguments, None if they are valid."""
        name = self._executable.name
        if self._arity is not None and len(arguments) != self._arity:
            return InvalidArgument(
                f"the program {name!r} takes {self._arity} arguments; {len(arguments)} were given"
            )
        for i, shards in enumerate(arguments):
            if len(shards) != len(self._devices):
                return InvalidArgument(
                    f"argument {i} of {name!r} has {len(shards)} shards; the program runs on the "
                    f"{len(self._devices)} devices {list(self._devices)}"
                )
            for buffer in shards:
                if not isinstance(buffer, Buffer) or buffer._spec.handle is not self._handle:
                    return InvalidArgument(
                        f"argument {i} of {name!r} is {buffer!r}, not a buffer of the client "
                        "that the program is loaded on"
                    )
                if buffer._pointer is None:
                    return self._deleted_argument(i, buffer)
        return None

    def _find_deleted(self, arguments: Sequence[Shards]) -> DeletedBuffer | None:
        """Returns the exception for an argument that another thread deleted or donated."""
        for i, shards in enumerate(arguments):
            for buffer in shards:
                if isinstance(buffer, Buffer) and buffer.is_gone():
                    return self._deleted_argument(i, buffer)
        return None

    def _deleted_argument(self, i: int, buffer: Buffer) -> DeletedBuffer:
        name, tensor_type = self._executable.name, buffer._spec.tensor_type
        return DeletedBuffer(f"argument {i} of {name!r} ({tensor_type}) {buffer.deletion_reason}")

    def device_assignment(self) -> DeviceAssignment:
        """The devices of all replicas and partitions, other processes' too (PJRT 0.79)."""
        args = self._handle.library.call(
            "LoadedExecutable_GetDeviceAssignment", executable=self._pointer
        )
        library = self._handle.library
        encoded = library.owned_bytes(
            args,
            "serialized_bytes",
            "serialized_device_assignment",
            "serialized_device_assignment_deleter",
        )
        with library.reading(args, "serialized_bytes"):
            return proto_wire.read_device_assignment(encoded)

    def logical_device_ids(self) -> list[tuple[int, int]]:
        """(replica, partition) of each of `addressable_devices` (PJRT 0.96)."""
        args = self._handle.library.call(
            "LoadedExecutable_AddressableDeviceLogicalIds", executable=self._pointer
        )
        ids = self._handle.library.items(
            args, "addressable_device_logical_ids", "num_addressable_device_logical_ids"
        )
        return [(i.replica, i.partition) for i in ids]

    def delete(self) -> None:
        if not self._deleted:
            self._deleted = True
            self._handle.library.call("LoadedExecutable_Delete", executable=self._pointer)
            self._arity = self._checked_signature = None
            self._launch_args.clear()

    def is_deleted(self) -> bool:
        return self._deleted


def _await_all(events: list[Event]) -> None:
    for event in events:
        with contextlib.suppress(PjrtError):  # raised where a result is read
            event.wait()
