"""Callback: functions called at a client's fatal events, before they end the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from plugrt.capi.abi import c_values
from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.structs import new_struct
from plugrt.capi.library.callback_threads import expect, mark_callback
from plugrt.errors import PjrtError, error_from_code

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData
    from plugrt.capi.client.client import Client

SLICE_BUILDER, PREFATAL = 1, 2
"""Callback types: a slice of accelerators failed to form; a fatal error is about to happen."""


def on_prefatal(client: Client, callback: Callable[[PjrtError], None]) -> None:
    """Calls ``callback`` with the error that is about to end the process, on any thread."""

    def run(args: CData, _user: object) -> None:
        told = ffi.cast("PJRT_Callback_PrefatalArgs*", args)
        message = c_values.text(told.error_message, told.error_message_size)
        callback(error_from_code(told.error_code, message))

    _register(client, PREFATAL, run)


def on_slice_failure(client: Client, callback: Callable[[int], None]) -> None:
    """Calls ``callback`` with the library's number for the kind of a slice's failure."""

    def run(args: CData, _user: object) -> None:
        callback(int(ffi.cast("PJRT_Callback_Tpu_SliceBuilderArgs*", args).failure_type))

    _register(client, SLICE_BUILDER, run)


def _register(client: Client, event: int, run: Callable[[CData, CData], None]) -> None:
    handle = client.handle()
    made = ffi.callback("void(*)(void*, void*)", mark_callback(run))
    handle.keep.append(made)
    expect(made)
    handle.library.extension("Callback").call(
        "Callback_RegisterCallback", client=handle.pointer, type=event, callback=made
    )


def invoke_prefatal(client: Client, error: PjrtError) -> None:
    """Makes the client call its prefatal callbacks, for tests."""
    handle = client.handle()
    told = new_struct("PJRT_Callback_PrefatalArgs")
    message, told.error_message_size = c_values.chars(error.message)
    told.error_code, told.error_message = error.code, message
    handle.library.extension("Callback").call(
        "Callback_InvokeCallback", client=handle.pointer, type=PREFATAL, args=told
    )
