"""`LoadedExecutable`: a program on its devices. `execute` launches it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from plugrt import interface
from plugrt.argument_errors import PYTHON_ERRORS, refuse_call, with_argument_errors
from plugrt.capi.abi._abi import ffi
from plugrt.capi.buffer import Buffer
from plugrt.capi.devices import ClientBase, Device
from plugrt.capi.donation import Donation
from plugrt.capi.events import Event
from plugrt.capi.executable import Executable
from plugrt.capi.executable_placement import (
    read_addressable_devices,
    read_device_assignment,
    read_logical_device_ids,
    result_specs,
)
from plugrt.capi.launch_args import LaunchArgs
from plugrt.capi.launch_faults import LaunchFaults
from plugrt.capi.launch_holds import launch_holding
from plugrt.capi.launch_ids import launch_ids
from plugrt.capi.launch_order import PartByPart, launches_one_by_one
from plugrt.capi.loading.function_table import Slot, new_struct
from plugrt.compiled_core import core
from plugrt.errors import (
    FailedPrecondition,
    InvalidArgument,
    InvalidReply,
    PjrtError,
)
from plugrt.interface import DeviceAssignment, ExecuteOptions, Shards

_unpack = ffi.unpack
_new: Any = object.__new__
_get_signature = attrgetter("_spec.signature")
_get_pointer = attrgetter("_pointer")

_FUNCTIONS_OF_CORE = (
    "LoadedExecutable_Execute", "Event_Await", "Event_Destroy", "Error_Destroy"
)  # fmt: skip
_GONE = re.compile("delet|donat", re.IGNORECASE)
"""What the refusal of an argument says that has no data any more."""


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
        "_core",
        "_deleted",
        "_devices",
        "_donation",
        "_executable",
        "_faults",
        "_first_specs",
        "_handle",
        "_launch",
        "_launch_args",
        "_launch_ids",
        "_one_device",
        "_only_spec",
        "_parts",
        "_pointer",
        "_specs",
    )  # fmt: skip

    def __init__(
        self, client: ClientBase, pointer: Any, donates: bool, names_layouts: bool = True
    ) -> None:
        handle = client.handle()
        library = handle.library
        self._client = client
        self._handle = handle
        self._pointer = handle.own("LoadedExecutable_Destroy", "executable", pointer)
        args = library.call("LoadedExecutable_GetExecutable", loaded_executable=pointer)
        self._executable = Executable(
            library,
            args.executable,
            client.origin,
            (handle, self._pointer),
            handle.exiting,
            handle if names_layouts else None,
        )
        self._devices = read_addressable_devices(client, pointer)
        self._faults = LaunchFaults(handle, self._executable, self._devices)
        self._one_device = len(self._devices) == 1
        self._specs = [result_specs(handle, self._executable, device) for device in self._devices]
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
        self._launch_ids: Iterator[int] | None = None
        self._parts: PartByPart | None = None
        self._core = self._make_core()

    def _make_core(self) -> Any:
        """Returns what the core launches; None where launches are Python's."""
        slots = self._handle.library.slots
        if core is None or not self._devices:
            return None
        if not all(isinstance(slots[name], ffi.CData) for name in _FUNCTIONS_OF_CORE):
            return None
        address = int(ffi.cast("uintptr_t", self._pointer))
        specs = [spec for of_device in self._specs for spec in of_device]
        return core.Executable(
            self._handle.core, address, self._pointer, len(self._devices), tuple(specs)
        )

    def _prepare_core(self) -> None:
        """Lets the core launch, after a launch that was checked."""
        if self._launch_ids is not None:
            self._core.know_ids(self._launch_ids)
        if self._donation and (known := self._donation.known) is not None:
            self._core.know_donated(*known)
        devices = self._devices
        if self._core.arity < 0 and launches_one_by_one(self._client, self._executable, devices):
            addresses = [int(ffi.cast("uintptr_t", device.pointer)) for device in devices]
            self._core.launch_one_by_one(tuple(addresses))

    def _prepare_python(self) -> None:
        """Finds out how later launches on several devices are made where there is no core."""
        devices = self._devices
        if launches_one_by_one(self._client, self._executable, devices):
            self._parts = PartByPart(self._handle, devices)

    def refuse(self, stub: Slot) -> None:
        """Replaces the library's function by ``stub``, which raises."""
        self._launch = stub

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
        if self._core is not None:
            donation = self._donation
            launcher: Callable[[Sequence[Shards]], Sequence[Shards]] = core.Launcher(
                self._core, self, donation.mark if donation else None
            )
            return launcher
        return self._launch_unchecked if self._one_device else self.execute

    def _launch_unchecked(self, arguments: Sequence[Shards]) -> Sequence[Shards]:
        """Launches on one device; the caller guarantees the arguments' number, types and client."""
        if self._donation is not None:
            return launch_holding(self._launch_on_one, arguments, None, 1, self._donation)
        return self._launch_on_one(arguments)

    def _launch_on_one(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> Sequence[Shards]:
        """As `_launch_unchecked`, with what it donates held; ``options`` are rarely given."""
        if options is not None:
            return self._execute_held(arguments, options, None)
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
        if self._launch_ids:
            args.options.launch_id = next(self._launch_ids)
        error = self._launch(args)
        if error:
            raise self._launch_error(error, arguments)
        spec = self._only_spec
        if spec is not None:
            pointer = produced[0]
            if not pointer:
                raise self._end_without_results(launch_args, arguments)
            result = _new(Buffer)  # as calling the class, in two thirds of the time
            result._pointer = pointer
            result._spec = spec
            results = [result]
        else:
            pointers = _unpack(*launch_args.produced)
            if not all(pointers):
                raise self._end_without_results(launch_args, arguments)
            results = [*map(Buffer, pointers, self._first_specs)]
        self._launch_args.append(launch_args)
        if self._donation:
            self._donation.mark(arguments)
        return results

    def _execute_on_all(
        self, arguments: Sequence[Shards], events: Any = ffi.NULL
    ) -> Sequence[Shards]:
        """Launches on several devices, without checking types."""

        def launch(arguments: Sequence[Shards], options: ExecuteOptions | None) -> Sequence[Shards]:
            if options is not None:
                return self._execute_held(arguments, options, events or None)
            return self._launch_on_all(arguments, events)

        return launch_holding(launch, arguments, None, len(self._devices), self._donation)

    def _launch_on_all(self, arguments: Sequence[Shards], events: Any) -> Sequence[Shards]:
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
        if self._launch_ids:
            launch_args.args.options.launch_id = next(self._launch_ids)
        error = None
        if self._parts is not None:
            error = self._parts.launch(self._launch, launch_args, events)
            if error is None:
                self._parts = None
        if error is None:
            error = self._launch(launch_args.args)
        if error:
            raise self._launch_error(error, arguments)
        count = launch_args.produced[1]
        rows = [_unpack(row, count) for row in launch_args.outputs]
        if not all(map(all, rows)):
            raise self._end_without_results(launch_args, arguments)
        made = [
            [Buffer(p, s) for p, s in zip(row, specs)]  # noqa: B905 - hot
            for row, specs in zip(rows, self._specs)  # noqa: B905 - hot
        ]
        self._launch_args.append(launch_args)
        if self._donation:
            self._donation.mark(arguments)
        return list(zip(*made))  # noqa: B905 - hot

    def _end_without_results(
        self,
        launch_args: LaunchArgs,
        arguments: Sequence[Shards],
        kept: Collection[int] = (),
    ) -> Exception:
        """Returns the exception of a launch that gave NULL for a result.

        It was made all the same, and took what is donated.
        """
        found = self._faults.missing_result(launch_args, self._specs)
        if self._donation:
            self._donation.mark(arguments, kept)
        return found

    def _missing_result(self, addresses: Sequence[int]) -> Exception:
        """Returns the exception of a launch of the core that gave NULL for a result."""
        made = iter([ffi.cast("PJRT_Buffer*", address) for address in addresses])
        rows = [[next(made) for _ in of_device] for of_device in self._specs]
        args = new_struct("struct PJRT_LoadedExecutable_Execute_Args")
        return self._faults.missing_among(args, rows, self._specs)

    def _missing_event(self) -> Exception:
        """Returns the exception of a launch that gave NULL for an event."""
        return InvalidReply(
            f"{self._handle.library.owner} launched {self._executable.name!r}, but gave no "
            "device_complete_events (NULL)"
        )

    def _take_error(self, error: int) -> Exception:
        """Returns the exception for the address of an error, of another function than a launch."""
        return self._handle.library.take_error(error)

    def _launch_error(self, error: Any, arguments: Sequence[Shards]) -> Exception:
        """Returns the exception of a launch; a concurrent deletion takes precedence.

        Deleted arguments are refused with INVALID_ARGUMENT, and words that XLA's clients have for
        it. After another error, such as that of a function that the program calls, those that are
        gone were donated to this launch, which failed later.
        """
        reported = self._handle.library.take_error(error)
        if self._deleted:
            return FailedPrecondition(f"the executable {self._executable.name!r} was deleted")
        is_refusal = isinstance(reported, InvalidArgument) and _GONE.search(reported.message)
        if self._donation and not is_refusal and self._donation.mark_taken(arguments):
            return reported
        return self._faults.find_deleted(arguments) or reported

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
            raise self._missing_event()
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

        def launch(arguments: Sequence[Shards], options: ExecuteOptions | None) -> Sequence[Shards]:
            return self._execute_held(arguments, options, events)

        return launch_holding(launch, arguments, options, len(self._devices), self._donation)

    def _execute_held(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None, events: Any
    ) -> Sequence[Shards]:
        if self._deleted:
            raise FailedPrecondition(f"the executable {self._executable.name!r} was deleted")
        refusal = self._faults.find(arguments, self._arity)
        if refusal is not None:
            raise refusal
        devices = len(self._devices)
        kept = options.non_donatable_input_indices if options else ()
        if self._donation and devices > 1:
            self._donation.refuse_repeated(arguments, kept)
        launch_args = LaunchArgs(self._pointer, devices, len(arguments), len(self._first_specs))
        for i in range(devices):
            launch_args.fill([shards[i]._pointer for shards in arguments], i)  # type: ignore[attr-defined]
        if self._arity is None:
            self._launch_ids = launch_ids(self._client, self._executable, devices)
        if self._launch_ids:
            launch_args.args.options.launch_id = next(self._launch_ids)
        if options is not None:
            launch_args.set_options(options)
        if events is not None:
            launch_args.args.device_complete_events = events
        error = self._launch(launch_args.args)
        if error:
            raise self._launch_error(error, arguments)
        if not all(all(launch_args.results(i)) for i in range(devices)):
            raise self._end_without_results(launch_args, arguments, kept)
        if self._arity is None and self._core is None:
            self._prepare_python()
        self._arity = len(arguments)
        made = [
            [Buffer(p, s) for p, s in zip(launch_args.results(i), self._specs[i], strict=True)]
            for i in range(devices)
        ]
        if self._one_device and options is None:
            self._checked_signature = [shards[0]._spec.signature for shards in arguments]  # type: ignore[attr-defined]
        if self._donation:
            self._donation.mark(arguments, kept)
        if self._core is not None and self._core.arity < 0:
            self._prepare_core()
            self._core.arity = len(arguments)
        return made[0] if self._one_device else list(zip(*made, strict=True))

    def _argument_error(self, arguments: Sequence[Shards]) -> Exception:
        fault = self._faults.find(arguments, self._arity)
        return fault or InvalidArgument("the arguments of the launch changed while it was made")

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
        with contextlib.suppress(PjrtError):  # raised where a result is read
            event.wait()
