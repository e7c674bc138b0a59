"""Level 0 of PJRT libraries: events and their errors. Needs no device."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from plugrt.capi.abi._abi import ffi
from plugrt_sdk.conformance.check import Chapter, Level, Needs
from plugrt_sdk.conformance.expect import expect, expect_equal
from plugrt_sdk.conformance.function_table import (
    call,
    call_well,
    destroy_handle,
    initialized_table,
    is_error,
    new_args,
    require_slot,
    take_error,
)
from plugrt_sdk.conformance.guarded_memory import Guarded
from plugrt_sdk.conformance.subject import PluginSubject

CHAPTER = Chapter("events", Level.INSTALLS, "pjrt_c_api.h: PJRT_Event_*", needs=Needs.LIBRARY)

_DATA_LOSS, _UNIMPLEMENTED = 15, 12
_WORDS = b"the cable was cut"
_SECONDS, _ONE_TOO_MANY = 10.0, 0.05


class _Event:
    """An event of ``PJRT_Event_Create``."""

    def __init__(self, api: Any, handle: Any) -> None:
        self.api, self.handle = api, handle

    def call(self, name: str, **fields: Any) -> Any:
        """Calls a function of events; returns its error."""
        args, _kept = new_args(f"Event_{name}")
        args.event = self.handle
        for field, value in fields.items():
            setattr(args, field, value)
        return call(self.api, f"Event_{name}", args)

    def is_ready(self) -> bool:
        args, _kept = new_args("Event_IsReady")
        args.event = self.handle
        call_well(self.api, "Event_IsReady", args)
        return bool(args.is_ready)

    def fail(self) -> Any:
        """Sets it to an error; returns the error of this call."""
        words = Guarded(_WORDS)
        return self.call(
            "Set", error_code=_DATA_LOSS, error_message=words.pointer, error_message_size=words.size
        )


@contextmanager
def _event(subject: PluginSubject) -> Iterator[_Event]:
    """Makes an event and destroys it; refuses if the library cannot make one."""
    api = initialized_table(subject)
    require_slot(api, "Event_Set")
    args, _kept = new_args("Event_Create")
    error = call(api, "Event_Create", args)
    if is_error(error):
        code, said = take_error(api, error)
        expect_equal(code, _UNIMPLEMENTED, "PJRT_Event_Create to succeed, or the code")
        subject.refuse(said)
    yield _Event(api, args.event)
    destroy_handle(api, "Event", "event", args.event)


@CHAPTER.check("pending", refusable=True, why="a host reads a result before it is there")
def pending(subject: PluginSubject) -> None:
    """An event is not ready before it is set, and ready afterwards."""
    with _event(subject) as event:
        expect_equal(event.is_ready(), False, "before it is set, is_ready:")
        expect(not is_error(event.fail()), "PJRT_Event_Set to succeed", "an error")
        expect_equal([event.is_ready(), event.is_ready()], [True, True], "after it, is_ready:")


@CHAPTER.check("set", refusable=True, why="users see another error than the device's, or none")
def carries_its_error(subject: PluginSubject) -> None:
    """An event has the code and the message that it was set to, through each function."""
    with _event(subject) as event:
        event.fail()
        for name in ("Error", "Await"):
            error = event.call(name)
            expect(is_error(error), f"an error from PJRT_Event_{name}", "none")
            code, said = take_error(event.api, error)
            expect_equal(code, _DATA_LOSS, f"of PJRT_Event_{name}, the code")
            expect(_WORDS.decode() in said, f"the message {_WORDS.decode()!r}", said)


@CHAPTER.check(
    "errors.independent",
    refusable=True,
    rests_on="pjrt_c_api.h: PJRT_Event_Error, PJRT_Event_Await",
    why="a host that frees one error crashes where it reads another",
)
def gives_independent_errors(subject: PluginSubject) -> None:
    """An event returns a new error in each call, which is freed on its own."""
    with _event(subject) as event:
        event.fail()
        errors = [event.call(name) for name in ("Error", "Error", "Await")]
        places = {int(ffi.cast("uintptr_t", error)) for error in errors}
        expect(len(places) == len(errors), f"{len(errors)} errors", f"{len(places)} address(es)")
        expect_equal({take_error(event.api, e)[0] for e in errors}, {_DATA_LOSS}, "the codes")


@CHAPTER.check(
    "errors.outlive",
    refusable=True,
    rests_on="pjrt_c_api.h: the caller frees each PJRT_Error",
    why="a host that reads an error later reads freed memory",
)
def errors_outlive(subject: PluginSubject) -> None:
    """An error of an event stays intact after the event was destroyed."""
    with _event(subject) as event:
        event.fail()
        error = event.call("Error")
    code, said = take_error(event.api, error)
    expect(code == _DATA_LOSS and _WORDS.decode() in said, _WORDS.decode(), f"code {code}: {said}")


@CHAPTER.check(
    "callbacks.once",
    refusable=True,
    rests_on="pjrt_c_api.h: PJRT_Event_OnReady",
    why="hosts free twice what a callback frees, or wait for ever",
)
def calls_back_once(subject: PluginSubject) -> None:
    """Callbacks are called once each, with their own error, set before or after the event is."""
    found: list[tuple[int, Any]] = []
    came = threading.Semaphore(0)

    @ffi.callback("PJRT_Event_OnReadyCallback")
    def callback(error: Any, argument: Any) -> None:
        found.append((int(ffi.cast("uintptr_t", argument)), error))
        came.release()

    with _event(subject) as event:
        for number in (1, 2, 3):
            if number == 3:
                event.fail()
            error = event.call("OnReady", callback=callback, user_arg=ffi.cast("void*", number))
            expect(not is_error(error), "PJRT_Event_OnReady to succeed", "an error")
        in_time = all(came.acquire(timeout=_SECONDS) for _ in range(3))
        expect(in_time, "three callbacks", f"{len(found)} within {_SECONDS:g} s")
        came.acquire(timeout=_ONE_TOO_MANY)
        subject.kept = callback
        expect_equal(sorted(number for number, _ in found), [1, 2, 3], "the callbacks that came:")
        codes = [take_error(event.api, error)[0] for _, error in found if is_error(error)]
        expect_equal(codes, [_DATA_LOSS] * 3, "the codes of their errors:")


@CHAPTER.check(
    "callbacks.early", refusable=True, rests_on="pjrt_c_api.h: PJRT_Event_OnReady",
    why="a host reads a result before it is there, and takes a failure for a success",
)  # fmt: skip
def calls_back_when_set(subject: PluginSubject) -> None:
    """No callback is called before its event is set."""
    came = threading.Event()

    @ffi.callback("PJRT_Event_OnReadyCallback")
    def callback(error: Any, argument: Any) -> None:
        if is_error(error):
            take_error(api, error)
        came.set()

    subject.kept = callback
    with _event(subject) as event:
        api = event.api
        event.call("OnReady", callback=callback)
        expect(not came.wait(_ONE_TOO_MANY), "no callback before PJRT_Event_Set", "one")
        event.fail()
        expect(came.wait(_SECONDS), "a callback after PJRT_Event_Set", f"none in {_SECONDS:g} s")


@CHAPTER.check("destroy_null", why="a host that cleans up after a failure crashes")
def destroy_null(subject: PluginSubject) -> None:
    """Destroying no event does nothing."""
    args, _kept = new_args("Event_Destroy")
    args.event = ffi.NULL
    api = initialized_table(subject)
    error = call(api, "Event_Destroy", args)
    if is_error(error):  # an error is fine as well: nothing was destroyed
        take_error(api, error)
