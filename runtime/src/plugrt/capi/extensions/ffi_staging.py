"""Calls of Python handlers by programs in memory that the host cannot address: through copies.

JAX does the same on GPUs: the arguments are copied to the host on the program's stream, the stream
is awaited once, and the results are copied back on it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.element_types import element_bits, pack_elements, packed_size, unpack_elements
from plugrt.capi.extensions.ffi import (
    HandlerCall,
    call_ffi,
    read_attributes,
    read_buffers,
    read_type,
)
from plugrt.capi.library.stream_copies import StreamCopies
from plugrt.errors import Internal, PjrtError
from plugrt.interface import Handler

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

_Arrays = Sequence[npt.NDArray[np.generic]]
# Process-wide: each thread's own calls.
_state = threading.local()


def call_with_copies(copies: StreamCopies) -> HandlerCall:
    """Returns a caller of a `Handler` with copies of arguments and results in host memory.

    Results are zeros at first; a result that reuses its argument's memory
    (``output_operand_aliases``) has the argument's elements. Raises the errors of ``copies``, and
    `Internal` for a library that provides no stream.
    """

    def call(handler: Handler, frame: CData) -> None:
        stream = _stream_of(frame)
        sources, targets = read_buffers(frame.args), read_buffers(frame.rets)
        arguments = _fetch(copies, sources, stream)
        known = {_address(s): a for s, a in zip(sources, arguments, strict=True) if a.size}
        results = [_result(target, known) for target in targets]
        for argument in arguments:
            argument.flags.writeable = False
        outer = is_calling()
        _state.is_calling = True
        try:
            # A separate list: a function that replaces an array in it has filled in no result.
            handler(arguments, [*results], read_attributes(frame.attrs))
        finally:
            _state.is_calling = outer
        _send(copies, targets, results, stream)

    return call


def is_calling() -> bool:
    """Whether this thread is in a Python function that a program has called with copies."""
    return getattr(_state, "is_calling", False)


def _stream_of(frame: CData) -> int:
    """Returns the address of the stream that a call's program runs on."""
    api = frame.api
    if api.struct_size <= ffi.offsetof("XLA_FFI_Api", "stream_get") or api.stream_get == ffi.NULL:
        raise Internal("the library has no function that gives the stream of a program")
    args = ffi.new("XLA_FFI_Stream_Get_Args*")
    args.struct_size, args.ctx = ffi.sizeof("XLA_FFI_Stream_Get_Args"), frame.ctx
    if (fault := call_ffi(api, "stream_get", args, "the library")) is not None:
        raise Internal(
            "the library gives no stream for a call of a Python function, whose arguments are in "
            f"a device's memory (XLA_FFI_Stream_Get: {fault})"
        )
    return int(ffi.cast("uintptr_t", args.stream))


def _address(buffer: CData) -> int:
    return int(ffi.cast("uintptr_t", buffer.data))


def _fetch(copies: StreamCopies, buffers: Sequence[CData], stream: int) -> _Arrays:
    """Returns copies of arguments; awaits the stream, also if there are none."""
    memories = []
    for buffer in buffers:
        shape, dtype = read_type(buffer)
        count = int(np.prod(shape, dtype=np.int64))
        memories.append((np.empty(packed_size(count, dtype), np.uint8), shape, dtype, count))
    try:
        for buffer, (memory, *_) in zip(buffers, memories, strict=True):
            if memory.size:
                copies.copy_to_host(memory, _address(buffer), stream)
    except BaseException:  # an interrupt, too: copies go on
        _settle(copies, stream)
        raise
    copies.wait(stream)
    return [_view_as_array(*memory) for memory in memories]


def _settle(copies: StreamCopies, stream: int) -> None:
    """Waits for copies that were begun before one failed: their arrays end with the call."""
    with contextlib.suppress(PjrtError):  # the first error has more information
        copies.wait(stream)


def _view_as_array(
    memory: npt.NDArray[np.uint8], shape: tuple[int, ...], dtype: np.dtype[np.generic], count: int
) -> npt.NDArray[np.generic]:
    if element_bits(dtype) < 8 and count:
        return unpack_elements(memory, dtype, count).reshape(shape)
    return memory.view(dtype).reshape(shape)


def _result(buffer: CData, known: dict[int, npt.NDArray[np.generic]]) -> npt.NDArray[np.generic]:
    shape, dtype = read_type(buffer)
    argument = known.get(_address(buffer))
    if argument is not None and (argument.shape, argument.dtype) == (shape, dtype):
        return argument.copy()
    return np.zeros(shape, dtype)


def _send(copies: StreamCopies, buffers: Sequence[CData], results: _Arrays, stream: int) -> None:
    """Copies results to a device's memory, and waits: they end with the call."""
    begun = []
    try:
        for buffer, result in zip(buffers, results, strict=True):
            if result.size:
                begun.append(pack_elements(result) if element_bits(result.dtype) < 8 else result)
                copies.copy_to_device(_address(buffer), begun[-1], stream)
    except BaseException:  # an interrupt, too: copies go on
        _settle(copies, stream)
        raise
    if begun:
        copies.wait(stream)
