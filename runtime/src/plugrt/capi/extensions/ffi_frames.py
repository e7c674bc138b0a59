"""Calls of C handlers of custom calls (``XLA_FFI_Handler``), from a backend in Python."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.declarations import API_MINOR
from plugrt.capi.abi.element_types import dtype_to_element_type
from plugrt.capi.extensions.ffi import (
    API_VERSION,
    ARRAY,
    BUFFER,
    DATA_TYPES,
    DICTIONARY,
    EXECUTE,
    METADATA,
    SCALAR,
    STRING,
)
from plugrt.errors import Unimplemented, error_from_code
from plugrt.interface import Handler

_data_types = {element: data_type for data_type, element in DATA_TYPES.items()}
_errors: dict[int, tuple[int, str]] = {}
"""The errors that handlers made and no launch has taken, by the address that stands for one."""
_addresses = itertools.count(1)


@ffi.callback("XLA_FFI_Error*(*)(XLA_FFI_Error_Create_Args*)")  # type: ignore[untyped-decorator]
def _create_error(args: Any) -> Any:
    address = next(_addresses)
    _errors[address] = (args.errc, ffi.string(args.message).decode(errors="replace"))
    return ffi.cast("XLA_FFI_Error*", address)


def call_c_handler(address: int) -> Handler:
    """Returns the C function at an address as a `Handler` for row-major arrays.

    Its frame has arguments, results and attributes, and of the functions of XLA's FFI those that
    make an error: none for a context, a stream, or state. What the function returns is raised.
    """
    handler = ffi.cast("XLA_FFI_Handler*", address)

    def call(
        arguments: Sequence[npt.NDArray[Any]],
        results: Sequence[npt.NDArray[Any]],
        attributes: Mapping[str, Any],
    ) -> None:
        keep: list[Any] = []
        frame = _new_frame(API_VERSION, keep)
        _fill_buffers(frame.args, arguments, keep)
        _fill_buffers(frame.rets, results, keep)
        _fill_attributes(frame.attrs, attributes, keep)
        _raise_error(handler(frame))

    return call


def handler_version(address: int, of_library: tuple[int, int]) -> tuple[int, int]:
    """Returns the version of XLA's FFI that a C handler says it was compiled for.

    ``of_library`` is what it is told of who asks.
    """
    keep: list[Any] = []
    frame = _new_frame(of_library, keep)
    metadata = _kept(ffi.new("XLA_FFI_Metadata*"), keep)
    metadata.struct_size = ffi.sizeof("XLA_FFI_Metadata")
    metadata.api_version.struct_size = ffi.sizeof("XLA_FFI_Api_Version")
    extension = _kept(ffi.new("XLA_FFI_Metadata_Extension*"), keep)
    extension.base.struct_size = ffi.sizeof("XLA_FFI_Metadata_Extension")
    extension.base.type, extension.metadata = METADATA, metadata
    frame.extension_start = ffi.addressof(extension.base)
    _raise_error(ffi.cast("XLA_FFI_Handler*", address)(frame))
    return metadata.api_version.major_version, metadata.api_version.minor_version


def _new_frame(version: tuple[int, int], keep: list[Any]) -> Any:
    api = _kept(ffi.new("XLA_FFI_Api*"), keep)
    api.struct_size = ffi.sizeof("XLA_FFI_Api")
    api.api_version.struct_size = ffi.sizeof("XLA_FFI_Api_Version")
    api.api_version.major_version, api.api_version.minor_version = version
    api.error_create = _create_error
    frame = _kept(ffi.new("XLA_FFI_CallFrame*"), keep)
    frame.struct_size = ffi.sizeof("XLA_FFI_CallFrame")
    frame.api, frame.stage = api, EXECUTE
    return frame


def _raise_error(error: Any) -> None:
    if error != ffi.NULL:
        code, message = _errors.pop(int(ffi.cast("uintptr_t", error)))
        raise error_from_code(code, message)


def _fill_buffers(target: Any, arrays: Sequence[npt.NDArray[Any]], keep: list[Any]) -> None:
    target.struct_size = ffi.sizeof("XLA_FFI_Values")
    target.size = len(arrays)
    buffers = [_buffer(array, keep) for array in arrays]
    target.types = _kept(ffi.new("int[]", [BUFFER] * len(arrays)), keep)
    target.values = _kept(ffi.new("void*[]", buffers), keep)


def _buffer(array: npt.NDArray[Any], keep: list[Any]) -> Any:
    buffer = _kept(ffi.new("XLA_FFI_Buffer*"), keep)
    buffer.struct_size = ffi.sizeof("XLA_FFI_Buffer")
    buffer.dtype = _data_type(array.dtype)
    buffer.data = ffi.cast("void*", array.ctypes.data)
    buffer.rank = array.ndim
    buffer.dims = _kept(ffi.new("int64_t[]", list(array.shape)), keep)
    return buffer


def _fill_attributes(target: Any, attributes: Mapping[str, Any], keep: list[Any]) -> None:
    """Writes attributes in the order of their names, in which handlers look for them."""
    encoded = [(name, *_attribute(name, attributes[name], keep)) for name in sorted(attributes)]
    target.struct_size = ffi.sizeof("XLA_FFI_Attrs")
    target.size = len(encoded)
    target.types = _kept(ffi.new("int[]", [kind for _, kind, _ in encoded]), keep)
    names = [_span(name, keep) for name, _, _ in encoded]
    target.names = _kept(ffi.new("XLA_FFI_ByteSpan*[]", names), keep)
    target.values = _kept(ffi.new("void*[]", [value for _, _, value in encoded]), keep)


def _attribute(name: str, value: Any, keep: list[Any]) -> tuple[int, Any]:
    if isinstance(value, str):
        return STRING, _span(value, keep)
    if isinstance(value, Mapping):
        inner = _kept(ffi.new("XLA_FFI_Attrs*"), keep)
        _fill_attributes(inner, value, keep)
        return DICTIONARY, inner
    data = np.array(value, order="C")
    dtype, address = _data_type(data.dtype), ffi.cast("void*", _kept(data, keep).ctypes.data)
    if isinstance(value, np.ndarray):
        return ARRAY, _kept(ffi.new("XLA_FFI_Array*", [dtype, data.size, address]), keep)
    return SCALAR, _kept(ffi.new("XLA_FFI_Scalar*", [dtype, address]), keep)


def _span(text: str, keep: list[Any]) -> Any:
    encoded = text.encode()
    data = _kept(ffi.new("char[]", encoded), keep)
    return _kept(ffi.new("XLA_FFI_ByteSpan*", [data, len(encoded)]), keep)


def _data_type(dtype: np.dtype[Any]) -> int:
    found = _data_types.get(dtype_to_element_type(dtype, API_MINOR))
    if found is None:
        raise Unimplemented(f"XLA's FFI has no arrays of {dtype.name}")
    return found


def _kept(made: Any, keep: list[Any]) -> Any:
    keep.append(made)
    return made
