"""`compile_reader`: the compiled core's reads of small buffers of one type."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt.capi.buffer_spec import BufferSpec
from plugrt.compiled_core import core

SMALL_BYTES = 1024
"""What is at most copied where the host addresses the memory: a view of so little costs more."""
_FUNCTIONS = (
    "Buffer_IncreaseExternalReferenceCount", "Buffer_DecreaseExternalReferenceCount",
    "Buffer_ReadyEvent", "Event_Await", "Event_Destroy", "Buffer_UnsafePointer",
    "Buffer_OnDeviceSizeInBytes", "Error_Destroy",
)  # fmt: skip


def is_small(spec: BufferSpec) -> bool:
    """Whether a buffer's contents are copied from the memory where they are, without a view."""
    return bool(spec.direct) and 0 < spec.nbytes <= SMALL_BYTES


def compile_reader(spec: BufferSpec) -> Any:
    """Returns what reads buffers of a small type; None where Python has to."""
    handle = spec.handle
    functions = [handle.library.slots[name] for name in _FUNCTIONS]
    if core is None or spec.axes is not None:
        return None
    if not all(isinstance(f, ffi.CData) for f in functions):
        return None
    return core.Reader(
        client=handle.core,
        functions=tuple(int(ffi.cast("uintptr_t", f)) for f in functions),
        lock=handle.lock,
        is_memory=handle.is_memory,
        make=np.ndarray,
        shape=spec.stored_shape,
        dtype=spec.dtype,
        size=spec.nbytes,
    )
