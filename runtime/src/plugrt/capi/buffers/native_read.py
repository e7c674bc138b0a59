"""`compile_reader`: the compiled core's reads of buffers of one type that the host addresses."""

from __future__ import annotations

from plugrt.capi.abi._abi import ffi
from plugrt.capi.buffers.buffer_spec import BufferSpec
from plugrt.capi.library.client_handle import system_says
from plugrt.native.native_core import core

SMALL_BYTES = 1024
"""The size up to which host-addressable memory is copied: a view costs more for so few bytes."""
_REFERENCES = ("Buffer_IncreaseExternalReferenceCount", "Buffer_DecreaseExternalReferenceCount")
_FUNCTIONS = ("Buffer_ReadyEvent", "Buffer_UnsafePointer", "Buffer_OnDeviceSizeInBytes")
_OF_CLIENT = ("Event_Await", "Event_Destroy", "Buffer_Destroy", "Error_Destroy")
_NEEDED = (*_REFERENCES, *_FUNCTIONS, *_OF_CLIENT)


def is_small(spec: BufferSpec) -> bool:
    """Whether a buffer's contents are copied from the memory where they are, without a view."""
    return bool(spec.direct) and 0 < spec.nbytes <= SMALL_BYTES


def compile_reader(spec: BufferSpec) -> object:
    """Returns the core's reader of buffers of a type (copies if small); None if Python reads."""
    handle = spec.handle
    if core is None or spec.axes is not None or not spec.nbytes:
        return None
    slots = handle.library.slots
    if not all(isinstance(slots[name], ffi.CData) for name in _NEEDED):
        return None
    functions = {name: int(ffi.cast("uintptr_t", slots[name])) for name in _NEEDED}
    increase, decrease = (functions[name] for name in _REFERENCES)
    return core.Reader(
        references=core.References(handle.core, increase, decrease, handle.lock),
        functions=tuple(functions[name] for name in _FUNCTIONS),
        is_memory=handle.is_memory,
        shape=spec.stored_shape,
        dtype=spec.dtype,
        views=not is_small(spec),
        asks_system=system_says,
    )
