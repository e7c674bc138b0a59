"""The functions that handlers of custom calls call (``XLA_FFI_Api``), for a backend in Python."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from plugrt.capi.abi._abi import ffi
from plugrt.errors import Internal

_NOT_FOUND, _UNIMPLEMENTED = 5, 12
_errors: dict[int, tuple[int, Any]] = {}
"""The code and the text (a ``char[]``) of each ``XLA_FFI_Error`` that is not destroyed, by the
address that stands for it."""
_addresses = itertools.count(1)
_launch = threading.local()


def _make_error(code: int, message: bytes) -> Any:
    address = next(_addresses)
    _errors[address] = (code, ffi.new("char[]", message))
    return ffi.cast("XLA_FFI_Error*", address)


def take_error(error: Any) -> tuple[int, str]:
    """Returns the code and the text of an error that a handler returned, and destroys it."""
    found = _errors.pop(int(ffi.cast("uintptr_t", error)), None)
    if found is None:
        raise Internal("a handler in C returned an error that XLA_FFI_Error_Create did not make")
    return found[0], ffi.string(found[1]).decode(errors="replace")


@ffi.callback("XLA_FFI_Error*(*)(XLA_FFI_Error_Create_Args*)")  # type: ignore[untyped-decorator]
def _create_error(args: Any) -> Any:
    return _make_error(args.errc, ffi.string(args.message))


@ffi.callback("void(*)(XLA_FFI_Error_GetMessage_Args*)")  # type: ignore[untyped-decorator]
def _get_message(args: Any) -> None:
    args.message = _errors[int(ffi.cast("uintptr_t", args.error))][1]


@ffi.callback("void(*)(XLA_FFI_Error_Destroy_Args*)")  # type: ignore[untyped-decorator]
def _destroy_error(args: Any) -> None:
    _errors.pop(int(ffi.cast("uintptr_t", args.error)), None)


@ffi.callback("XLA_FFI_Error*(*)(XLA_FFI_ExecutionContext_Get_Args*)")  # type: ignore[untyped-decorator]
def _get_data(args: Any) -> Any:
    found = getattr(_launch, "data", {}).get(args.type_id[0])
    if found is None:
        return _make_error(_NOT_FOUND, b"the launch has no data of the type %d" % args.type_id[0])
    args.data = ffi.cast("void*", found)
    return ffi.NULL


def _refuse(name: str) -> Any:
    message = f"XLA_FFI_{name} is not implemented for handlers that a backend in Python calls"
    return ffi.callback(
        "XLA_FFI_Function*", lambda args: _make_error(_UNIMPLEMENTED, message.encode())
    )


FUNCTIONS = {
    "error_create": _create_error,
    "error_get_message": _get_message,
    "error_destroy": _destroy_error,
    "execution_context_get": _get_data,
    "handler_register": _refuse("Handler_Register"),
    "stream_get": _refuse("Stream_Get"),
    "type_register": _refuse("Type_Register"),
    "state_set": _refuse("State_Set"),
    "state_get": _refuse("State_Get"),
    "device_memory_allocate": _refuse("DeviceMemory_Allocate"),
    "device_memory_free": _refuse("DeviceMemory_Free"),
    "thread_pool_schedule": _refuse("ThreadPool_Schedule"),
    "thread_pool_num_threads": _refuse("ThreadPool_NumThreads"),
    "future_create": _refuse("Future_Create"),
    "future_set_available": _refuse("Future_SetAvailable"),
    "future_set_error": _refuse("Future_SetError"),
    "run_id_get": _refuse("RunId_Get"),
    "device_ordinal_get": _refuse("DeviceOrdinal_Get"),
}
"""The functions of ``XLA_FFI_Api``: there is one in each place, as handlers call them unasked."""


@contextmanager
def launch_data(data: Mapping[int, int]) -> Iterator[None]:
    """Gives handlers that this thread calls the host's data of a launch: addresses by type ids."""
    before = getattr(_launch, "data", {})
    _launch.data = data
    try:
        yield
    finally:
        _launch.data = before
