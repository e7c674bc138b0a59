"""`BackendLoadedExecutable`: launches of a compiled program."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import count, repeat
from typing import Any

import numpy as np

from plugrt.capi.buffers.donated_arguments import refuse_repeated
from plugrt.errors import FailedPrecondition, InvalidArgument
from plugrt.frames.argument_errors import PYTHON_ERRORS, refuse_call
from plugrt.interface import (
    Buffer,
    Client,
    Event,
    ExecuteOptions,
    LoadedExecutable,
    Shards,
    TensorType,
)
from plugrt.interface.handler_calls import call_in_launch
from plugrt.lifetime.waiter import ended
from plugrt.native.finalizers import finish_pending
from plugrt_sdk.buffer import BackendBuffer
from plugrt_sdk.compiled import Handle
from plugrt_sdk.device import BackendDevice
from plugrt_sdk.event import when_all_ready
from plugrt_sdk.executable import BackendExecutable
from plugrt_sdk.returns import wrong_return
from plugrt_sdk.session import Session
from plugrt_sdk.uses import Uses, begin_all, end_all

_FIRST_TOKEN = TensorType((0,), np.dtype(np.bool_))
"""The type of a chain's first token, as hosts pass it (`plugrt.interface.TOKEN_TYPE`)."""

# Process-wide: numbers the launches of all backends, for `calling_launch`.
_numbers = count(1)
Arguments = Sequence[Sequence[BackendBuffer]]


class BackendLoadedExecutable(LoadedExecutable):
    """A launchable program: checks arguments, calls the author's function, owns the results."""

    __slots__ = (
        "_deleted",
        "_donates",
        "_launch",
        "_results",
        "_seen",
        "_session",
        "addressable_devices",
        "executable",
    )

    addressable_devices: tuple[BackendDevice, ...]
    executable: BackendExecutable

    def __init__(
        self, session: Session, executable: BackendExecutable, devices: Sequence[BackendDevice]
    ) -> None:
        self._session = session
        self.executable = executable
        self.addressable_devices = tuple(devices)
        self._launch = executable.compiled.launch
        self._donates = "donated" in session.methods
        kinds = zip(executable.output_types, executable.output_memory_kinds, strict=True)
        self._results = [(kind, [d.memory(place) for d in devices]) for kind, place in kinds]
        """The type of each result, and its memory on each device."""
        self._seen = [*executable.input_types]
        """Each parameter's type, as the object that fitted last: an identity check is quick."""
        self._deleted = False

    @property
    def client(self) -> Client:
        return self._session.client

    def execute(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> Sequence[Shards]:
        finish_pending()
        if self._deleted:
            raise FailedPrecondition(f"the program {self.executable.name!r} was deleted")
        self._session.require_open()
        handles = self._handles_as_before(arguments)
        if handles is not None:
            return self._run(handles)
        try:
            checked = self._check(arguments)
        except PYTHON_ERRORS as error:
            refuse_call(self.execute, error, arguments=arguments)
        if self._session.counts_uses:
            return self._launch_using(checked, options)
        return self._run([[buffer.handle for buffer in shards] for shards in checked])

    def _handles_as_before(self, arguments: Sequence[Shards]) -> list[list[Handle]] | None:
        """Returns the handles for one device if each type is the object that fitted last.

        None where `_check` must look, or where uses are counted. It is the same check with fewer
        calls: under JAX it saves a sixth of a small launch.
        """
        seen = self._seen
        if (
            self._session.counts_uses
            or len(self.addressable_devices) != 1
            or len(arguments) != len(seen)
        ):
            return None
        [device], handles = self.addressable_devices, []
        for shards, kind in zip(arguments, seen, strict=True):
            if type(shards) is not tuple or len(shards) != 1:
                return None
            buffer = shards[0]
            if type(buffer) is not BackendBuffer or buffer._type is not kind:
                return None
            handle = buffer._handle  # before the flag: `delete` sets that first
            if buffer._deleted or buffer._memory.device is not device:
                return None
            handles.append([handle])
        return handles

    def _run(self, *arguments: Any) -> list[tuple[BackendBuffer, ...]]:
        """Calls the author's function and owns its results."""
        try:
            if self._session.has_handlers:
                number = next(_numbers)
                results = call_in_launch(lambda: number, self._launch, *arguments)
            else:
                results = self._launch(*arguments)
        except MemoryError as error:
            what = f"the launch of {self.executable.name!r}"
            raise self._session.explain_exhaustion(what, error) from None
        self._check_results(results)
        session, owned = self._session, []
        for handles, (kind, memories) in zip(results, self._results, strict=True):
            made = map(BackendBuffer, repeat(session), handles, repeat(kind), memories)
            owned.append((*made,))
        return owned

    def _check_results(self, results: Sequence[Sequence[Handle]]) -> None:
        try:
            fits = len(results) == len(self._results)
            for handles, (kind, memories) in zip(results, self._results, strict=False):
                fits = fits and len(handles) == len(memories)
                for handle in handles:
                    if handle is None and not kind.is_token:
                        fits = False
        except TypeError:
            fits = False
        if not fits:
            number, devices = len(self._results), len(self.addressable_devices)
            expected = f"a list for each of {number} results of {self.executable.name!r}, each of "
            expected += f"{devices} handles (one a device)"
            raise wrong_return(self._session.backend, "launch", expected, results)

    def _launch_using(
        self, arguments: Arguments, options: ExecuteOptions | None
    ) -> list[tuple[BackendBuffer, ...]]:
        """Launches; keeps the arguments until the launch is complete, gives donated ones away."""
        name, donated = self.executable.name, self.executable.compiled.donated
        if options is not None and donated:
            donated = donated.difference(options.non_donatable_input_indices)
        handles = [[buffer.handle for buffer in shards] for shards in arguments]
        consumed = frozenset[int]()
        if donated:
            refuse_repeated(name, arguments, donated)
            consumed = frozenset(i for i in donated if _claim(arguments[i]))
        used = [
            buffer.uses
            for i, shards in enumerate(arguments)
            if i not in consumed
            for buffer in shards
        ]
        try:
            self._begin(used, arguments)
            try:
                results = self._run(handles, consumed) if self._donates else self._run(handles)
            except BaseException:
                end_all(used)
                raise
        except BaseException:
            for i in consumed:
                for buffer in arguments[i]:
                    buffer.uses.unclaim()
            raise
        for i in donated:
            for buffer in arguments[i]:
                buffer.give_away(name, i in consumed)
        pending = _events_of(results) if self._session.asynchronous else ()
        if pending:
            when_all_ready(pending, lambda: end_all(used))
        else:
            end_all(used)
        return results

    def _begin(self, used: Sequence[Uses], arguments: Arguments) -> None:
        """Adds a use to each argument that the launch does not consume.

        Raises `DeletedBuffer` if another thread deleted or donated one after the check.
        """
        gone = begin_all(used)
        if gone is not None:
            buffers = (buffer for shards in arguments for buffer in shards)
            raise next(b for b in buffers if b.uses is gone).deleted_error()

    def execute_with_wait(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> tuple[Sequence[Shards], Callable[[], None]]:
        results = self.execute(arguments, options)
        events = _events_of(results)
        if not events:
            return results, ended
        end = threading.Event()
        when_all_ready(events, end.set)

        def wait() -> None:
            end.wait()

        return results, wait

    def _check(self, arguments: Sequence[Shards]) -> list[list[BackendBuffer]]:
        """Returns the arguments, if they are buffers of the program's types on its devices."""
        expected, name = self.executable.input_types, self.executable.name
        if len(arguments) != len(expected):
            raise InvalidArgument(
                f"the program {name!r} takes {len(expected)} arguments; {len(arguments)} were given"
            )
        devices, seen, checked = self.addressable_devices, self._seen, []
        for i, shards in enumerate(arguments):
            buffers: list[Any] = [*shards]
            if len(buffers) != len(devices):
                what, count = f"argument {i} of {name!r}", len(buffers)
                raise InvalidArgument(f"{what} has {count} buffers for {len(devices)} devices")
            wanted = expected[i]
            for place, buffer in enumerate(buffers):
                if type(buffer) is not BackendBuffer or buffer.device is not devices[place]:
                    _refuse_place(buffer, devices[place], f"argument {i} of {name!r}")
                found = buffer.type
                if found is seen[i]:
                    continue
                if found != wanted and not (wanted.is_token and found == _FIRST_TOKEN):
                    raise InvalidArgument(
                        f"argument {i} of {name!r} must be {wanted}; {found} was given"
                    )
                seen[i] = found
            checked.append(buffers)
        return checked

    def delete(self) -> None:
        self._deleted = True

    def is_deleted(self) -> bool:
        return self._deleted


def _refuse_place(buffer: object, device: BackendDevice, what: str) -> None:
    """Raises `InvalidArgument` for an object that is no buffer of a backend on ``device``."""
    if not isinstance(buffer, BackendBuffer):
        raise InvalidArgument(f"{what} must be on {device!r}; got {buffer!r:.60}")
    if buffer.device is not device:
        raise InvalidArgument(f"{what} must be on {device!r}; it is on {buffer.device!r}")


def _claim(shards: Sequence[BackendBuffer]) -> bool:
    """Takes the handles of a donated argument over; all or none."""
    claimed: list[BackendBuffer] = []
    for buffer in shards:
        if not buffer.uses.claim():
            for other in claimed:
                other.uses.unclaim()
            return False
        claimed.append(buffer)
    return True


def _events_of(results: Sequence[Sequence[Buffer]]) -> list[Event]:
    """Returns the events of results that are not ready."""
    events = (buffer.ready_event() for shards in results for buffer in shards)
    return [event for event in events if not event.is_ready()]
