"""Calls of C handlers of custom calls (``XLA_FFI_Handler``), from a backend in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.declarations import API_MINOR
from plugrt.capi.abi.element_types import (
    dtype_to_element_type,
    element_bits,
    pack_elements,
    unpack_elements,
)
from plugrt.capi.extensions.ffi import (
    ARRAY,
    BUFFER,
    DATA_TYPES,
    DICTIONARY,
    EXECUTE,
    METADATA,
    SCALAR,
    STRING,
)
from plugrt.capi.extensions.ffi_functions import FUNCTIONS, take_error
from plugrt.capi.extensions.ffi_states import Context, States
from plugrt.errors import Unimplemented, error_from_code
from plugrt.interface import Handler

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

T = TypeVar("T")

_data_types = {element: data_type for data_type, element in DATA_TYPES.items()}
FRAME_VERSION = (0, 3)
"""The version of XLA's FFI that frames have, as in the headers of jaxlib 0.10.2."""
_FRAME_SIZE = ffi.offsetof("XLA_FFI_CallFrame", "future")
"""The size of a frame that handlers made with XLA's C++ header require: up to ``future``."""


def call_c_handler(target: str, address: int) -> Handler:
    """Returns the C function at an address as a `Handler` for row-major arrays.

    Its frame has arguments, results and attributes, and XLA's FFI functions for errors, types,
    states and the host's data of the launch (`launch_data`); the others, for streams, threads and
    memory, return an error that names them. An error that the function returns is raised.

    Raises `Unimplemented` if it is compiled for a version of XLA's FFI with other frames.
    """
    require_frames(target, address)

    def call(
        arguments: Sequence[npt.NDArray[np.generic]],
        results: Sequence[npt.NDArray[np.generic]],
        attributes: Mapping[str, object],
    ) -> None:
        nothing = States()
        context = Context(target, EXECUTE, nothing, nothing)
        call_stage(address, context, arguments, results, attributes)

    return call


def require_frames(target: str, address: int) -> None:
    """Raises `Unimplemented` for a C function that cannot read the frames that are made here."""
    found = handler_version(address, FRAME_VERSION)
    if found[0] != FRAME_VERSION[0] or found[1] > FRAME_VERSION[1]:
        raise version_error(target, found, "a backend in Python", FRAME_VERSION)


def call_stage(
    address: int,
    context: Context,
    arguments: Sequence[npt.NDArray[np.generic]],
    results: Sequence[npt.NDArray[np.generic]],
    attributes: Mapping[str, object],
) -> None:
    """Calls a C function for one stage; raises the error that it returns."""
    keep: list[object] = []
    frame = _make_frame(_table_of(FRAME_VERSION), keep)
    frame.ctx = _kept(ffi.new_handle(context), keep)
    frame.stage = context.stage
    _fill_buffers(frame.args, arguments, keep)
    packed = _fill_buffers(frame.rets, results, keep)
    _fill_attributes(frame.attrs, attributes, keep)
    _raise_error(ffi.cast("XLA_FFI_Handler*", address)(frame))
    for result, memory in packed:
        result[...] = unpack_elements(memory, result.dtype, result.size).reshape(result.shape)


def handler_version(
    address: int, of_library: tuple[int, int], api: CData | None = None
) -> tuple[int, int]:
    """Returns the version of XLA's FFI for which a C handler was compiled.

    ``of_library`` describes the caller to it, with the functions of ``api`` if there are any.
    """
    keep: list[object] = []
    frame = _make_frame(api or _table_of(of_library), keep)
    metadata = _kept(ffi.new("XLA_FFI_Metadata*"), keep)
    metadata.struct_size = ffi.sizeof("XLA_FFI_Metadata")
    metadata.api_version.struct_size = ffi.sizeof("XLA_FFI_Api_Version")
    extension = _kept(ffi.new("XLA_FFI_Metadata_Extension*"), keep)
    extension.base.struct_size = ffi.sizeof("XLA_FFI_Metadata_Extension")
    extension.base.type, extension.metadata = METADATA, metadata
    frame.extension_start = ffi.addressof(extension.base)
    _raise_error(ffi.cast("XLA_FFI_Handler*", address)(frame))
    return metadata.api_version.major_version, metadata.api_version.minor_version


def version_error(
    target: str, found: tuple[int, int], owner: str, theirs: tuple[int, int]
) -> Unimplemented:
    """Returns the error for a C handler of another version of XLA's FFI than ``owner`` has."""
    return Unimplemented(
        f"the handler of {target!r} is compiled for version {found[0]}.{found[1]} of XLA's FFI, "
        f"and {owner} has {theirs[0]}.{theirs[1]}. Fix: compile it with the headers of that version"
    )


def make_api(version: tuple[int, int], **functions: object) -> CData:
    """Returns a table of functions for handlers (``XLA_FFI_Api``), which lives while it is kept."""
    api = ffi.new("XLA_FFI_Api*")
    api.struct_size = ffi.sizeof("XLA_FFI_Api")
    api.api_version.struct_size = ffi.sizeof("XLA_FFI_Api_Version")
    api.api_version.major_version, api.api_version.minor_version = version
    for name, function in {**FUNCTIONS, **functions}.items():
        setattr(api, name, function)
    return api


@cache
def _table_of(version: tuple[int, int]) -> CData:
    return make_api(version)


def _make_frame(api: CData, keep: list[object]) -> CData:
    frame = _kept(ffi.new("XLA_FFI_CallFrame*"), keep)
    frame.struct_size = _FRAME_SIZE
    frame.api, frame.stage = api, EXECUTE
    return frame


def _raise_error(error: object) -> None:
    if error != ffi.NULL:
        raise error_from_code(*take_error(error))


def _fill_buffers(
    target: CData, arrays: Sequence[npt.NDArray[np.generic]], keep: list[object]
) -> list[tuple[npt.NDArray[np.generic], npt.NDArray[np.uint8]]]:
    """Writes buffers; returns the arrays that the handler gets packed, with the packed bytes."""
    target.struct_size = ffi.sizeof("XLA_FFI_Values")
    target.size = len(arrays)
    packed = [(a, pack_elements(a)) for a in arrays if element_bits(a.dtype) < 8]
    memory = {id(array): bytes_ for array, bytes_ in packed}
    buffers = [_buffer(array, memory.get(id(array), array), keep) for array in arrays]
    target.types = _kept(ffi.new("int[]", [BUFFER] * len(arrays)), keep)
    target.values = _kept(ffi.new("void*[]", buffers), keep)
    return packed


def _buffer(
    array: npt.NDArray[np.generic], memory: npt.NDArray[np.generic], keep: list[object]
) -> object:
    buffer = _kept(ffi.new("XLA_FFI_Buffer*"), keep)
    buffer.struct_size = ffi.sizeof("XLA_FFI_Buffer")
    buffer.dtype = _data_type(array.dtype)
    buffer.data = ffi.cast("void*", _kept(memory, keep).ctypes.data)
    buffer.rank = array.ndim
    buffer.dims = _kept(ffi.new("int64_t[]", list(array.shape)), keep)
    return buffer


def _fill_attributes(target: CData, attributes: Mapping[str, object], keep: list[object]) -> None:
    """Writes attributes sorted by name, as handlers expect."""
    encoded = [(name, *_attribute(name, attributes[name], keep)) for name in sorted(attributes)]
    target.struct_size = ffi.sizeof("XLA_FFI_Attrs")
    target.size = len(encoded)
    target.types = _kept(ffi.new("int[]", [kind for _, kind, _ in encoded]), keep)
    names = [_span(name, keep) for name, _, _ in encoded]
    target.names = _kept(ffi.new("XLA_FFI_ByteSpan*[]", names), keep)
    target.values = _kept(ffi.new("void*[]", [value for _, _, value in encoded]), keep)


def _attribute(name: str, value: object, keep: list[object]) -> tuple[int, CData]:
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


def _span(text: str, keep: list[object]) -> CData:
    encoded = text.encode()
    data = _kept(ffi.new("char[]", encoded), keep)
    return _kept(ffi.new("XLA_FFI_ByteSpan*", [data, len(encoded)]), keep)


def _data_type(dtype: np.dtype[np.generic]) -> int:
    found = _data_types.get(dtype_to_element_type(dtype, API_MINOR))
    if found is None:
        raise Unimplemented(f"XLA's FFI has no arrays of {dtype.name}")
    return found


def _kept(made: T, keep: list[object]) -> T:
    keep.append(made)
    return made
