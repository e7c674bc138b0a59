"""`ProgramLaunches`: launches of a program that Python makes, on one device or on several."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from plugrt.capi.abi._abi import ffi
from plugrt.capi.buffers.buffer import Buffer
from plugrt.capi.buffers.buffer_spec import BufferSpec
from plugrt.capi.buffers.launch_holds import launch_holding
from plugrt.capi.devices.devices import ClientBase, Device
from plugrt.capi.loading.function_table import Slot
from plugrt.capi.programs.executable import Executable
from plugrt.capi.programs.launch_args import LaunchArgs
from plugrt.capi.programs.launch_errors import LaunchErrors
from plugrt.capi.programs.launch_order import PartByPart, is_launched_one_by_one
from plugrt.errors import FailedPrecondition, PjrtError
from plugrt.interface import ExecuteOptions, Shards

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

_unpack = ffi.unpack
_new: Any = object.__new__
_get_pointer = attrgetter("_pointer")


class ProgramLaunches(LaunchErrors):
    """Launches of one program; a launch that equals the last checked one is not checked again.

    Argument structs are prepared once for each number of arguments and kept in a free list, so that
    a launch only fills in pointers; a launch from another thread uses another struct.
    """

    __slots__ = (
        "_checked_signature",
        "_core",
        "_first_specs",
        "_launch",
        "_launch_args",
        "_launch_ids",
        "_one_device",
        "_only_spec",
        "_parts",
        "_pointer",
        "addressable_devices",
        "client",
    )  # fmt: skip

    _checked_signature: list[object] | None
    """The arguments' signatures at the last checked launch, on one device."""
    _core: Any
    """The launcher in the core; None if Python launches."""
    _first_specs: list[BufferSpec]
    _launch: Slot
    _launch_args: list[LaunchArgs]
    _launch_ids: Iterator[int] | None
    _one_device: bool
    _only_spec: BufferSpec | None
    """The spec of the only result on one device, else None."""
    _parts: PartByPart | None
    _pointer: CData
    addressable_devices: Sequence[Device]
    client: ClientBase

    def _launch_unchecked(self, arguments: Sequence[Shards]) -> Sequence[Shards]:
        """Launches on one device; the caller guarantees the arguments' number, types and client."""
        if self._handle.donates:
            return launch_holding(self._launch_on_one, arguments, None, self._donation)
        return self._launch_on_one(arguments)

    def _make_launch_args(self, devices: int, num_arguments: int) -> LaunchArgs:
        sizes = self._handle.library.sizes
        return LaunchArgs(self._pointer, devices, num_arguments, len(self._first_specs), sizes)

    def _launch_on_one(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> Sequence[Shards]:
        """As `_launch_unchecked`, but holds the donated arguments; ``options`` are rare."""
        if options is not None:
            return self._execute_held(arguments, options, None)
        try:
            launch_args = self._launch_args.pop()
        except IndexError:
            if self._arity is None:
                return self._execute_held(arguments, None, None)
            launch_args = self._make_launch_args(1, len(arguments))
        args, block, fixed, pristine, places, everything, produced = launch_args.hot
        block[fixed] = pristine
        try:
            places[everything] = [*map(_get_pointer, arguments)]
        except (TypeError, ValueError, AttributeError):
            return self._execute_held(arguments, None, None)  # which finds the fault, if any
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
        self, arguments: Sequence[Shards], events: CData = ffi.NULL
    ) -> Sequence[Shards]:
        """Launches on several devices, without checking types."""

        def launch(arguments: Sequence[Shards], options: ExecuteOptions | None) -> Sequence[Shards]:
            if options is not None:
                return self._execute_held(arguments, options, events or None)
            return self._launch_on_all(arguments, events)

        return launch_holding(launch, arguments, None, self._donation)

    def _launch_on_all(self, arguments: Sequence[Shards], events: CData) -> Sequence[Shards]:
        if self._donation:
            self._donation.refuse_repeated(arguments)
        handle = self._handle
        try:
            launch_args = self._launch_args.pop()
        except IndexError:
            launch_args = self._make_launch_args(len(self.addressable_devices), len(arguments))
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

    def _execute(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None, events: object = None
    ) -> Sequence[Shards]:
        """Launches with all arguments checked: several devices, options, or the first time."""

        def launch(arguments: Sequence[Shards], options: ExecuteOptions | None) -> Sequence[Shards]:
            return self._execute_held(arguments, options, events)

        return launch_holding(launch, arguments, options, self._donation)

    def _execute_held(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None, events: object
    ) -> Sequence[Shards]:
        if self._deleted:
            raise FailedPrecondition(f"the executable {self.executable.name!r} was deleted")
        refusal = self._faults.find(arguments, self._arity)
        if refusal is not None:
            raise refusal
        devices = len(self.addressable_devices)
        kept = options.non_donatable_input_indices if options else ()
        if self._donation and devices > 1:
            self._donation.refuse_repeated(arguments, kept)
        launch_args = self._make_launch_args(devices, len(arguments))
        for i in range(devices):
            # `_live`, because another thread may have deleted a buffer since it was checked.
            launch_args.fill([shards[i]._live() for shards in arguments], i)  # type: ignore[attr-defined]
        if self._arity is None:
            self._launch_ids = launch_ids(self.client, self.executable, devices)
        if self._launch_ids:
            launch_args.args.options.launch_id = next(self._launch_ids)
        if options is not None:
            launch_args.set_options(options)
        if events is not None:
            launch_args.args.device_complete_events = events
        error = self._launch(launch_args.args)
        if error:
            error = self._handle.launch_resized(launch_args.args, error)
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

    def _prepare_core(self) -> None:
        """Lets the core launch, after a launch that was checked."""
        if self._launch_ids is not None:
            self._core.know_ids(self._launch_ids)
        if self._donation and (known := self._donation.known) is not None:
            self._core.know_donated(*known)
        devices = self.addressable_devices
        if self._core.arity < 0 and is_launched_one_by_one(self.client, self.executable, devices):
            addresses = [int(ffi.cast("uintptr_t", device.pointer)) for device in devices]
            self._core.launch_one_by_one(tuple(addresses))

    def _prepare_python(self) -> None:
        """Decides how Python makes later launches on several devices, without the core."""
        devices = self.addressable_devices
        if is_launched_one_by_one(self.client, self.executable, devices):
            self._parts = PartByPart(self._handle, devices)


_MOST = 0x7FFFFFFF
# Process-wide: an id must differ from the ids of all launches of the process.
_of_process = itertools.count(1)


def launch_ids(
    client: ClientBase, executable: Executable, local_devices: int
) -> Iterator[int] | None:
    """Returns the ids of a program's launches; None for a program on one device.

    The parts of a launch find each other by its id: if all ids were 0, parts of two concurrent
    launches would meet and wait for ever. The ids are unique in this process. For a program over
    several processes each process counts the same ids from a number that the program has, since all
    launch the same programs in the same order.
    """
    is_alone = len(client.addressable_devices()) == len(client.devices())
    if is_alone:
        return _fit(_of_process) if local_devices > 1 else None
    parts = executable.num_replicas * executable.num_partitions
    if parts == local_devices:
        return _fit(_of_process) if parts > 1 else None
    try:
        mark = executable.fingerprint()
    except PjrtError:
        mark = executable.name.encode()
    return _fit(itertools.count(zlib.crc32(mark)))


def _fit(numbers: Iterator[int]) -> Iterator[int]:
    """Converts numbers to ids, which have 31 bits and are not 0, without a Python call for each.

    Between launches the processor's caches are cold, so a call costs a microsecond.
    """
    return filter(None, map(_MOST.__and__, numbers))
