"""FFI: handlers of custom calls (``stablehlo.custom_call`` with ``api_version = 4``)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plugrt.capi.abi import c_values
from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.element_types import (
    element_bits,
    element_type_to_dtype,
    pack_elements,
    packed_size,
    unpack_elements,
)
from plugrt.capi.library.callback_threads import expect, mark_callback
from plugrt.capi.loading.exception_guard import guard, take_caught
from plugrt.capi.loading.library import Library
from plugrt.errors import PjrtError, Unimplemented
from plugrt.interface import Handler
from plugrt.interface.handler_calls import call_in_launch
from plugrt.lifetime.callback_exits import as_failure
from plugrt.native.native_core import catching

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

ARRAY, DICTIONARY, SCALAR, STRING = 1, 2, 3, 4
METADATA = 1
EXECUTE = 3
API_VERSION = (0, 1)
BUFFER = 1
_TOO_SHORT = 16
"""The size up to the arguments' second field: `plugrt trace --check` reports smaller ones."""
_TOKEN = 17

DATA_TYPES: dict[int, int] = {
    1: 1, 30: 30, 26: 24, 21: 21, 2: 2, 3: 3, 4: 4, 5: 5, 31: 31, 27: 25, 22: 22, 6: 6, 7: 7,
    8: 8, 9: 9, 10: 10, 11: 11, 12: 12, 16: 13, 15: 14, 18: 15, 19: 16, 29: 27, 28: 26, 20: 17,
    23: 18, 24: 19, 25: 20, 32: 29, 33: 28,
}  # fmt: skip
"""``XLA_FFI_DataType`` to ``PJRT_Buffer_Type``."""


HandlerCall: TypeAlias = "Callable[[Handler, CData], None]"
"""Calls a handler with the arguments in a ``XLA_FFI_CallFrame*``; passes on its results."""


def can_register_handlers(library: Library, *, ask: bool) -> bool:
    """Whether a library can register handlers; with ``ask``, calls the function to find out.

    Exported plugins have one for all backends. The call passes arguments that end too early and
    registers nothing: a library returns an error for them, which is UNIMPLEMENTED if it has no such
    function.
    """
    if "FFI" not in library.extensions or not library.extension("FFI").has("FFI_Register_Handler"):
        return False
    if ask:
        try:
            library.extension("FFI").call("FFI_Register_Handler", struct_size=_TOO_SHORT)
        except Unimplemented:
            return False
        except PjrtError:
            return True
    return True


def call_in_place(handler: Handler, frame: CData) -> None:
    """Calls a handler with views of the program's memory, which the host can address."""
    arguments = [_array(buffer, False) for buffer in read_buffers(frame.args)]
    buffers = read_buffers(frame.rets)
    results = [_array(buffer, True) for buffer in buffers]
    # A separate list: a function that replaces an array in it has filled in no result.
    handler(arguments, [*results], read_attributes(frame.attrs))
    for buffer, result in zip(buffers, results, strict=True):
        if result.size and element_bits(result.dtype) < 8:
            packed = pack_elements(result)
            ffi.memmove(buffer.data, packed.tobytes(), packed.size)


def register_handler(
    library: Library,
    target: str,
    handler: Handler,
    platform: str,
    call: HandlerCall = call_in_place,
) -> None:
    """Registers a Python function for custom calls to ``target`` on ``platform``, such as ``Host``.

    It runs on a thread of the library with the interpreter's lock. An exception becomes the error
    of the launch: a `PjrtError` with its code. Handlers stay for the life of the process; the
    library decides what a second one of a name does.
    """
    register_c_handler(library, target, make_c_handler(target, handler, call), platform)


def make_c_handler(target: str, handler: Handler, call: HandlerCall = call_in_place) -> CData:
    """Returns a Python function as an ``XLA_FFI_Handler`` that lives as long as the process.

    ``call`` makes its calls; the usual one is for memory that the host can address.
    """

    def run(frame: CData) -> object:
        if not answer_metadata(frame) and frame.stage == EXECUTE:
            call_in_launch(partial(_run_id, frame), call, handler, frame)
        return ffi.NULL

    def fail(error: BaseException, frame: CData) -> object:
        failure = as_failure(f"the handler of {target!r}", error)
        return _error(frame, failure.code, failure.message)

    def fail_unguarded(_: object, error: BaseException, entry: Any) -> object:
        return fail(error, *entry.tb_frame.f_locals["arguments"])

    # Without the core an interrupt may come at the entry of the guard; cffi would return NULL.
    guarded = catching(mark_callback(run), fail)
    callback = ffi.callback("XLA_FFI_Handler*", guarded, onerror=fail_unguarded)
    expect(callback)  # until the process ends: it cannot be unregistered
    return callback


def _run_id(frame: CData) -> int | None:
    """Returns XLA's number of the launch that makes a call; None where the library has none."""
    api, end = frame.api, ffi.offsetof("XLA_FFI_Api", "run_id_get") + ffi.sizeof("void*")
    if api == ffi.NULL or api.struct_size < end or api.run_id_get == ffi.NULL:
        return None
    args = ffi.new("XLA_FFI_RunId_Get_Args*")
    args.struct_size, args.ctx = ffi.sizeof("XLA_FFI_RunId_Get_Args"), frame.ctx
    failed = call_ffi(api, "run_id_get", args, "the library") is not None
    return None if failed else int(args.run_id)


def address_of(handler: object) -> int:
    """Returns the address of an object that `make_c_handler` returned."""
    return int(ffi.cast("uintptr_t", handler))


def register_c_handler(library: Library, target: str, handler: object, platform: str) -> None:
    """Registers a C function (an address, or a cffi pointer) of type ``XLA_FFI_Handler``."""
    name, name_size = c_values.chars(target)
    where, where_size = c_values.chars(platform)
    library.extension("FFI").call(
        "FFI_Register_Handler",
        target_name=name,
        target_name_size=name_size,
        handler=ffi.cast("void*", handler),
        platform_name=where,
        platform_name_size=where_size,
    )


def answer_metadata(frame: CData) -> bool:
    """Answers the query for the handler's version, which libraries make at registration."""
    base = frame.extension_start
    if base == ffi.NULL or base.type != METADATA:
        return False
    metadata = ffi.cast("XLA_FFI_Metadata_Extension*", base).metadata
    api = frame.api.api_version if frame.api != ffi.NULL else None
    metadata.api_version.struct_size = ffi.sizeof("XLA_FFI_Api_Version")
    metadata.api_version.major_version = api.major_version if api is not None else API_VERSION[0]
    metadata.api_version.minor_version = api.minor_version if api is not None else API_VERSION[1]
    return True


def call_ffi(api: CData, function: str, args: CData, owner: str) -> str | None:
    """Calls a function of XLA's FFI; returns the text of its error, which is freed, or None."""
    error = guard(getattr(api, function), f"XLA_FFI_{function.title()}", owner)(args)
    if error == ffi.NULL:
        return None
    if (caught := take_caught(error)) is not None:
        return caught
    # With room for the fields that 0.4 writes; 0.3 accepts a struct that is longer than its own.
    details = ffi.new("XLA_FFI_Error_GetDetails_Args*")
    details.struct_size, details.error = ffi.sizeof("XLA_FFI_Error_GetDetails_Args"), error
    api.error_get_message(ffi.cast("XLA_FFI_Error_GetMessage_Args*", details))
    told = details.message != ffi.NULL
    text = ffi.string(details.message).decode(errors="replace") if told else "it says nothing"
    done = ffi.new("XLA_FFI_Error_Destroy_Args*")
    done.struct_size, done.error = ffi.sizeof("XLA_FFI_Error_Destroy_Args"), error
    api.error_destroy(done)
    return str(text)


def read_buffers(buffers: CData) -> list[CData]:
    """Returns the buffers of arguments or results without tokens, which have no data."""
    found = [ffi.cast("XLA_FFI_Buffer*", buffers.values[i]) for i in range(buffers.size)]
    return [buffer for buffer in found if buffer.dtype != _TOKEN]


def read_type(buffer: CData) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    """Returns the shape and the dtype of an ``XLA_FFI_Buffer*``."""
    shape = tuple(c_values.unpack(buffer.dims, buffer.rank))
    return shape, element_type_to_dtype(DATA_TYPES.get(buffer.dtype, 0))


def _array(buffer: CData, writeable: bool) -> npt.NDArray[np.generic]:
    """Returns a view of a buffer, valid during the call; of packed elements a copy."""
    shape, dtype = read_type(buffer)
    count = int(np.prod(shape, dtype=np.int64))
    if count == 0:
        nothing = np.empty(shape, dtype)
        nothing.flags.writeable = writeable
        return nothing
    memory = np.frombuffer(ffi.buffer(buffer.data, packed_size(count, dtype)), np.uint8)
    if element_bits(dtype) < 8:
        view = unpack_elements(memory, dtype, count).reshape(shape)
    else:
        view = memory.view(dtype).reshape(shape)
    view.flags.writeable = writeable
    return view


def read_attributes(attrs: CData) -> dict[str, object]:
    """Returns the attributes of a call by name: NumPy's scalars and arrays, texts, dicts."""
    found: dict[str, object] = {}
    for i in range(attrs.size):
        span = attrs.names[i]
        found[c_values.text(span.ptr, span.len)] = _attribute(attrs.types[i], attrs.values[i])
    return found


def _attribute(attribute_type: int, pointer: CData) -> object:
    if attribute_type == STRING:
        span = ffi.cast("XLA_FFI_ByteSpan*", pointer)
        return c_values.text(span.ptr, span.len)
    if attribute_type == SCALAR:
        scalar = ffi.cast("XLA_FFI_Scalar*", pointer)
        dtype = element_type_to_dtype(DATA_TYPES.get(scalar.dtype, 0))
        return np.frombuffer(c_values.data(scalar.value, dtype.itemsize), dtype)[0]
    if attribute_type == ARRAY:
        array = ffi.cast("XLA_FFI_Array*", pointer)
        dtype = element_type_to_dtype(DATA_TYPES.get(array.dtype, 0))
        return np.frombuffer(c_values.data(array.data, array.size * dtype.itemsize), dtype)
    if attribute_type == DICTIONARY:
        return read_attributes(ffi.cast("XLA_FFI_Attrs*", pointer)[0])
    raise ValueError(f"an attribute has the unknown type {attribute_type}")


def _error(frame: CData, code: int, message: str) -> object:
    args = ffi.new("XLA_FFI_Error_Create_Args*")
    args.struct_size = ffi.sizeof("XLA_FFI_Error_Create_Args")
    text = ffi.new("char[]", message.encode())
    args.message, args.errc = text, code
    return frame.api.error_create(args)
