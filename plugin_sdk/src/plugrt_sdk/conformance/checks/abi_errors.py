"""Level 0 of PJRT libraries: messages, codes and ownership of errors. Needs no device."""

from __future__ import annotations

from typing import Any

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.c_values import text
from plugrt_sdk.conformance.check import Chapter, Level, Needs
from plugrt_sdk.conformance.expect import expect, expect_equal
from plugrt_sdk.conformance.function_table import (
    call,
    call_well,
    initialized_table,
    make_error,
    new_args,
    read_error,
    require_slot,
    take_error,
)
from plugrt_sdk.conformance.subject import PluginSubject

CHAPTER = Chapter("abi", Level.INSTALLS, "pjrt_c_api.h: PJRT_Error_*", needs=Needs.LIBRARY)

_MOST_CODE = 16


@CHAPTER.check(
    "destroy_null",
    rests_on="pjrt_c_api.h: PJRT_Error_Destroy",
    why="a host that cleans up after a failure crashes",
)
def destroy_null(subject: PluginSubject) -> None:
    """Destroying no error does nothing."""
    args, _kept = new_args("Error_Destroy")
    args.error = ffi.NULL
    call(initialized_table(subject), "Error_Destroy", args)


@CHAPTER.check(
    "errors",
    rests_on="pjrt_c_api.h: PJRT_Error_Code, PJRT_Error_Message",
    refusable=True,
    why="users see no reason, and hosts take one error for another",
)
def errors(subject: PluginSubject) -> None:
    """An error has a code from 1 to 16 and a message, the same in each call."""
    api = initialized_table(subject)
    error = make_error(api, subject)
    first, again = read_error(api, error), read_error(api, error)
    take_error(api, error)
    expect(1 <= first[0] <= _MOST_CODE, f"a code from 1 to {_MOST_CODE}", first[0])
    expect(first[1].strip(), "a message", first[1])
    expect_equal(again, first, "still")


@CHAPTER.check(
    "errors.several",
    refusable=True,
    rests_on="pjrt_c_api.h: PJRT_Error_Destroy",
    why="a thread's error becomes another's",
)
def several_errors(subject: PluginSubject) -> None:
    """Two calls return two errors: freeing one leaves the other intact."""
    api = initialized_table(subject)
    first, second = make_error(api, subject), make_error(api, subject)
    expect(first != second, "two errors", "one address")
    before = read_error(api, second)
    take_error(api, first)
    expect_equal(take_error(api, second), before, "still")


@CHAPTER.check(
    "errors.message",
    refusable=True,
    rests_on="pjrt_c_api.h: PJRT_Error_Message",
    why="a host that kept the pointer reads freed memory",
)
def message_stays(subject: PluginSubject) -> None:
    """An error's message keeps its address while the error lives, and contains no NUL."""
    api = initialized_table(subject)
    error, places = make_error(api, subject), []
    for _ in range(2):
        args, _kept = new_args("Error_Message")
        args.error = error
        call(api, "Error_Message", args)
        places.append((int(ffi.cast("uintptr_t", args.message)), int(args.message_size)))
    said = text(args.message, args.message_size)
    take_error(api, error)
    expect_equal(places[1], places[0], "address and size")
    expect("\0" not in said, "a text without NUL", said)


@CHAPTER.check(
    "errors.payloads",
    refusable=True,
    rests_on="pjrt_c_api.h: PJRT_Error_ForEachPayload, new in 0.99",
    why="JAX, which asks each error for them, crashes or asks for ever",
)
def payloads(subject: PluginSubject) -> None:
    """An error's payloads have unique keys, and are the same in a second visit."""
    api = initialized_table(subject)
    require_slot(api, "Error_ForEachPayload")
    error = make_error(api, subject)
    found = [_payloads(api, error) for _ in range(2)]
    take_error(api, error)
    keys = [key for key, _ in found[0]]
    expect(all(keys) and len(set(keys)) == len(keys), "keys of their own", keys)
    expect_equal(found[1], found[0], "visited again, the payloads")


_VISIT = ffi.new("int*")
"""The visitor's argument."""


def _payloads(api: Any, error: Any) -> list[tuple[str, str]]:
    """Returns the keys and the values of an error's payloads."""
    found: list[tuple[str, str]] = []
    given: list[Any] = []

    @ffi.callback("PJRT_Error_PayloadVisitor")
    def visit(key: Any, key_size: int, value: Any, size: int, argument: Any) -> None:
        given.append(argument)
        found.append((text(key, key_size), text(value, size)))

    args, _kept = new_args("Error_ForEachPayload")
    args.error, args.visitor, args.user_arg = error, visit, _VISIT
    call_well(api, "Error_ForEachPayload", args)
    expect(all(each == _VISIT for each in given), "the visitor called with user_arg", given)
    return found
