"""Level 3 of PJRT libraries: the callbacks of a device's events: when, and how often."""

from __future__ import annotations

import threading
from collections import Counter
from functools import partial
from typing import Any

import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt_sdk.conformance.check import Chapter, Level, Needs
from plugrt_sdk.conformance.expect import Array, expect, expect_equal, expect_same_bits
from plugrt_sdk.conformance.function_table import is_error, take_error
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.sweeps import in_another_thread, within_limits
from plugrt_sdk.conformance.table_arrays import Arrays
from plugrt_sdk.conformance.table_client import TableClient
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter(
    "table_events", Level.BEHAVES, "pjrt_c_api.h: PJRT_Event_OnReady", needs=Needs.LIBRARY_CLIENT
)

_SECONDS, _ONE_TOO_MANY = 10.0, 0.05
_LARGE = np.arange(1 << 20, dtype=np.float32)


class _Callbacks:
    """Two callbacks of one event, with their arguments and the event's state in the call."""

    def __init__(self, client: TableClient, event: Any, result: Array | None = None) -> None:
        self._client, self._event, self._result = client, event, result
        self._came = threading.Semaphore(0)
        self.numbers: list[int] = []
        self.errors: list[tuple[int, str]] = []
        self.ready: list[bool] = []
        self.seen: list[Array] = []
        callback = client.keep(ffi.callback("PJRT_Event_OnReadyCallback", self._call))
        for number in (1, 2):
            argument = ffi.cast("void*", number)
            client.call("Event_OnReady", event=event, callback=callback, user_arg=argument)

    def _call(self, error: Any, argument: Any) -> None:
        if is_error(error):
            self.errors.append(take_error(self._client.api, error))
        self.ready.append(bool(self._client.call("Event_IsReady", event=self._event).is_ready))
        if self._result is not None:
            self.seen.append(self._result.copy())
        self.numbers.append(int(ffi.cast("uintptr_t", argument)))
        self._came.release()

    def expect_once_each(self) -> None:
        """Raises `Mismatch` unless both are called once, without an error, on a ready event."""
        came = [self._came.acquire(timeout=_SECONDS) for _ in range(2)]
        expect(all(came), "two callbacks", f"{sum(came)} within {_SECONDS:g} s")
        self._client.finish(self._event)
        self._came.acquire(timeout=_ONE_TOO_MANY)
        expect_equal(sorted(self.numbers), [1, 2], "the callbacks that came:")
        expect_equal(self.errors, [], "their errors:")
        expect_equal(self.ready, [True, True], "in each of them, is_ready:")


@CHAPTER.check(
    "put", rests_on="pjrt_c_api.h: PJRT_Buffer_ReadyEvent, PJRT_Event_OnReady",
    why="a host that waits for an array by a callback waits for ever, or frees twice",
)  # fmt: skip
def put_calls_back(subject: PluginSubject) -> None:
    """The ready event of an array calls each callback once, when it is ready, without an error."""
    client = TableClient.of(subject)
    event = client.call("Buffer_ReadyEvent", buffer=client.put(_LARGE)).event
    _Callbacks(client, event).expect_once_each()


@CHAPTER.check(
    "launch", rests_on="pjrt_c_api.h: PJRT_LoadedExecutable_Execute, device_complete_events",
    why="a host that frees the arguments by a callback frees them too early, twice, or never",
)  # fmt: skip
def launch_calls_back(subject: PluginSubject) -> None:
    """The event of a launch calls each callback once, when it is ready, without an error."""
    client = TableClient.of(subject)
    loaded, _ = client.compile(programs.ADD.encode())
    args, outputs = client.execute_args(loaded, client.put(ONE), client.put(ONE))
    events = client.keep(ffi.new("PJRT_Event*[1]"))
    args.device_complete_events = events
    failed = client.try_args("LoadedExecutable_Execute", args)
    expect(failed is None, "PJRT_LoadedExecutable_Execute to succeed", failed)
    _Callbacks(client, events[0]).expect_once_each()
    expect_same_bits(client.get(outputs[0], ONE.size), ONE + ONE, "the sum")


@CHAPTER.check(
    "read", rests_on="pjrt_c_api.h: PJRT_Buffer_ToHostBuffer_Args.event",
    why="a host that reads by a callback has what was there before",
)  # fmt: skip
def read_calls_back(subject: PluginSubject) -> None:
    """The event of a read calls each callback once, when the whole array was written."""
    client = TableClient.of(subject)
    room = client.keep(np.full(_LARGE.size, -1, np.float32))
    read = client.call(
        "Buffer_ToHostBuffer", src=client.put(_LARGE), dst=ffi.from_buffer(room),
        dst_size=room.nbytes,
    )  # fmt: skip
    callbacks = _Callbacks(client, read.event, room)
    callbacks.expect_once_each()
    for seen in callbacks.seen:
        expect_same_bits(seen, _LARGE, "in the callback, the array")


@CHAPTER.check(
    "no_error", rests_on="pjrt_c_api.h: PJRT_Event_Error",
    why="a host that asks an event for its error takes a success for a failure",
)  # fmt: skip
def success_is_no_error(subject: PluginSubject) -> None:
    """The events of a successful put, array, launch and read have no error."""
    client = TableClient.of(subject)
    put = client.put_args(ONE)
    loaded, _ = client.compile(programs.ADD.encode())
    x = client.put(ONE)
    launch, outputs = client.execute_args(loaded, x, x)
    complete = client.keep(ffi.new("PJRT_Event*[1]"))
    launch.device_complete_events = complete
    for name, args in (("Client_BufferFromHostBuffer", put), ("LoadedExecutable_Execute", launch)):
        failed = client.try_args(name, args)
        expect(failed is None, f"PJRT_{name} to succeed", failed)
    array = client.call("Buffer_ReadyEvent", buffer=outputs[0]).event
    room = client.keep(np.empty_like(ONE))
    read = client.call(
        "Buffer_ToHostBuffer", src=put.buffer, dst=ffi.from_buffer(room), dst_size=room.nbytes
    )
    events = {
        "a put": put.done_with_host_buffer, "a launch": complete[0], "an array": array,
        "a read": read.event,
    }  # fmt: skip
    for what, event in events.items():
        if event != ffi.NULL:
            client.expect_ready(event, f"the event of {what}")
            expect_equal(client.refused("Event_Error", event=event), None, f"the error of {what}:")
            client.finish(event)


_TIMES = 1001


@CHAPTER.check(
    "often", rests_on="pjrt_c_api.h: PJRT_Event_OnReady, _Await, _IsReady, _Error",
    why="a server that waits for its thousandth array waits for ever, or takes it for a failure",
)  # fmt: skip
def events_often(subject: PluginSubject) -> None:
    """A thousand ready events call back once each, are ready, and have no error, in two threads."""
    arrays = Arrays.of(subject)
    in_another_thread(partial(_expect_events, arrays))
    _expect_events(arrays)


def _expect_events(arrays: Arrays) -> None:
    """Requests a callback of the ready events of arrays, waits for them and reads their states."""
    called: Counter[int] = Counter()
    came = threading.Semaphore(0)

    @ffi.callback("PJRT_Event_OnReadyCallback")
    def call(error: Any, argument: Any) -> None:
        number = int(ffi.cast("uintptr_t", argument))
        if is_error(error):
            take_error(arrays.client.api, error)
            number = -1
        called[number] += 1
        came.release()

    arrays.client.keep(call)
    count = 0
    for number in within_limits(range(_TIMES), 0.5):
        buffer = arrays.put(ONE, device=arrays.devices[number % len(arrays.devices)])
        event = arrays.call("Buffer_ReadyEvent", buffer=buffer).event
        argument = ffi.cast("void*", number)
        arrays.call("Event_OnReady", event=event, callback=call, user_arg=argument)
        arrays.call("Event_Await", event=event)
        what = f"of event {number}, after it was awaited,"
        expect(arrays.call("Event_IsReady", event=event).is_ready, f"{what} is_ready", "not")
        _, failed = arrays.attempt("Event_Error", event=event)
        expect(failed is None, f"{what} no error", failed)
        arrays.call("Event_Destroy", event=event)
        arrays.destroy(buffer)
        count += 1
    for _ in range(count):
        expect(came.acquire(timeout=_SECONDS), f"{count} callbacks", sum(called.values()))
    came.acquire(timeout=_ONE_TOO_MANY)
    wrong = {number: times for number, times in called.items() if times != 1 or number < 0}
    expect(not wrong, "one callback without an error for each event", wrong)
