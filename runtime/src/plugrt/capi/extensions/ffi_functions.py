"""The functions that handlers of custom calls call (``XLA_FFI_Api``), for a backend in Python."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from plugrt.capi.abi import c_values
from plugrt.capi.abi._abi import ffi
from plugrt.capi.extensions.ffi_states import INSTANTIATE, STAGES, context_at
from plugrt.capi.extensions.ffi_types import register_type_at
from plugrt.capi.library.callback_threads import c_callback
from plugrt.errors import Internal, InvalidArgument, PjrtError, Unimplemented
from plugrt.interface import HandlerStages, calling_launch
from plugrt.lifetime.interruptions import scope

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

_NOT_FOUND, _UNIMPLEMENTED, _INTERNAL = 5, 12, 13
_STATE, _OLD_STATE = "XLA_FFI_State_Args", "XLA_FFI_State_Args_Before_0_3"
# Process-wide: handlers in C have only an error's address.
_errors: dict[int, tuple[int, CData]] = {}
"""The code and the text (a ``char[]``) of each ``XLA_FFI_Error`` that is not destroyed, by its
address."""
# Process-wide: numbers `_errors`.
_addresses = itertools.count(1)
# Process-wide: each thread's own launch.
_launch = threading.local()


def _make_error(code: int, message: bytes) -> CData:
    address = next(_addresses)
    _errors[address] = (code, ffi.new("char[]", message))
    return ffi.cast("XLA_FFI_Error*", address)


def take_error(error: object) -> tuple[int, str]:
    """Returns the code and the text of an error that a handler returned, and destroys it."""
    found = _errors.pop(int(ffi.cast("uintptr_t", error)), None)
    if found is None:
        raise Internal("a handler in C returned an error that XLA_FFI_Error_Create did not make")
    return found[0], ffi.string(found[1]).decode(errors="replace")


@c_callback("XLA_FFI_Error*(*)(XLA_FFI_Error_Create_Args*)")
def _create_error(args: CData) -> CData:
    return _make_error(args.errc, ffi.string(args.message))


@c_callback("void(*)(XLA_FFI_Error_GetMessage_Args*)")
def _get_message(args: CData) -> None:
    args.message = _errors[int(ffi.cast("uintptr_t", args.error))][1]


@c_callback("void(*)(XLA_FFI_Error_Destroy_Args*)")
def _destroy_error(args: CData) -> None:
    _errors.pop(int(ffi.cast("uintptr_t", args.error)), None)


@c_callback("XLA_FFI_Error*(*)(XLA_FFI_ExecutionContext_Get_Args*)")
def _get_data(args: CData) -> CData:
    found = getattr(_launch, "data", {}).get(args.type_id[0])
    if found is None:
        return _make_error(_NOT_FOUND, b"the launch has no data of the type %d" % args.type_id[0])
    args.data = ffi.cast("void*", found)
    return ffi.NULL


def _function(struct: str, run: Callable[[CData], None]) -> CData:
    """Returns a C function that calls ``run`` with an argument struct, and returns its error."""

    def call(args: CData) -> CData:
        try:
            size = ffi.cast("size_t*", args)[0]
            needed = ffi.sizeof(_OLD_STATE if struct == _STATE else struct)
            if size < needed:
                raise InvalidArgument(f"{struct} of {size} bytes; {needed} are needed")
            run(ffi.cast(f"{struct}*", args))
        except PjrtError as error:
            return _make_error(error.code, error.message.encode())
        except Exception as error:  # noqa: BLE001 - C cannot unwind; the handler gets the error
            return _make_error(_INTERNAL, f"{type(error).__name__}: {error}".encode())
        return ffi.NULL

    return ffi.callback("XLA_FFI_Function*", call)


def _get_run_id(args: CData) -> None:
    launch = calling_launch()
    if launch is None:
        raise Unimplemented("the backend does not say which launch calls a handler (RunId_Get)")
    args.run_id = launch


def _set_state(args: CData) -> None:
    args, stage = _state_args(args)
    context_at(args.ctx).set_state(stage, _id_of(args), args.state)


def _get_state(args: CData) -> None:
    args, stage = _state_args(args)
    args.state = context_at(args.ctx).get_state(stage, _id_of(args))


def _state_args(args: CData) -> tuple[Any, int]:
    """Returns the arguments and the stage, which is not among them before version 0.3."""
    if args.struct_size < ffi.sizeof(_STATE):
        return ffi.cast(f"{_OLD_STATE}*", args), INSTANTIATE
    return args, args.stage


def _id_of(args: CData) -> int:
    if args.type_id == ffi.NULL:
        raise InvalidArgument("a handler names no type of its state (type_id)")
    return int(args.type_id[0])


def _register_type(args: CData) -> None:
    if args.type_id == ffi.NULL:
        raise InvalidArgument(
            "XLA_FFI_Type_Register got NULL as type_id, to which it writes the id"
        )
    info = int(ffi.cast("uintptr_t", args.type_info))
    name = c_values.text(args.name.ptr, args.name.len)
    register_type_at(name, int(ffi.cast("uintptr_t", args.type_id)), info)


def registering(register: Callable[[str, HandlerStages, str], None]) -> CData:
    """Returns ``XLA_FFI_Handler_Register`` for a plugin: ``register`` of target, stages, platform.

    The caller must keep it alive.
    """

    def run(args: CData) -> None:
        stages = {name: int(ffi.cast("uintptr_t", getattr(args, name))) or None for name in STAGES}
        target = c_values.text(args.name.ptr, args.name.len)
        execute = stages.pop("execute")
        if execute is None:
            raise InvalidArgument(f"the handler of {target!r} has no function to execute")
        platform = c_values.text(args.platform.ptr, args.platform.len)
        register(target, HandlerStages(execute, **stages), platform)

    return _function("XLA_FFI_Handler_Register_Args", run)


def _refuse(name: str) -> CData:
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
    "type_register": _function("XLA_FFI_Type_Register_Args", _register_type),
    "state_set": _function(_STATE, _set_state),
    "state_get": _function(_STATE, _get_state),
    "device_memory_allocate": _refuse("DeviceMemory_Allocate"),
    "device_memory_free": _refuse("DeviceMemory_Free"),
    "thread_pool_schedule": _refuse("ThreadPool_Schedule"),
    "thread_pool_num_threads": _refuse("ThreadPool_NumThreads"),
    "future_create": _refuse("Future_Create"),
    "future_set_available": _refuse("Future_SetAvailable"),
    "future_set_error": _refuse("Future_SetError"),
    "run_id_get": _function("XLA_FFI_RunId_Get_Args", _get_run_id),
    "device_ordinal_get": _refuse("DeviceOrdinal_Get"),
}
"""The functions of ``XLA_FFI_Api``: all are set, as handlers call them without a check."""


@scope
def launch_data(data: Mapping[int, int]) -> Iterator[None]:
    """Gives handlers that this thread calls the host's data of a launch: addresses by type ids."""
    before = getattr(_launch, "data", {})
    try:
        _launch.data = data
        yield
    finally:
        _launch.data = before
