"""`compile_copy`: the compiled core's copies of arrays of one type to another device."""

from __future__ import annotations

from typing import Any

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi._handles import HANDLES
from plugrt.capi.buffers.buffer import Buffer
from plugrt.capi.buffers.buffer_spec import BufferSpec
from plugrt.capi.loading.library import Library
from plugrt.native.native_core import core

_FUNCTIONS = ("Buffer_CopyToDevice", "Buffer_GetMemoryLayout")
_ARGS = "PJRT_Buffer_CopyToDevice_Args"


def compile_copy(spec: BufferSpec) -> Any:
    """Returns what makes copies with that spec of arrays on another of the client's devices.

    None where there is no core, where Python calls the functions that it needs, or where the
    library has to copy in another way.
    """
    handle = spec.handle
    functions = [handle.library.slots[name] for name in _FUNCTIONS]
    if handle.library.ways.lacks("copy to a device", "Buffer_CopyToDevice"):
        return None
    if core is None or not all(isinstance(f, ffi.CData) for f in functions):
        return None
    copy, layout, device = (
        int(ffi.cast("uintptr_t", pointer)) for pointer in (*functions, spec.device.pointer)
    )
    return core.Copy(
        client=handle.core,
        spec=spec,
        owner=_Faults(handle.library),
        device=device,
        rank=len(spec.shape),
        copy=copy,
        layout=layout,
    )


class _Faults:
    """Says what is wrong where a copy of the core failed."""

    __slots__ = ("_library",)

    def __init__(self, library: Library) -> None:
        self._library = library

    def _copy_error(self, error: int, buffer: Buffer) -> Exception:
        """Returns the exception for the address of an error, of the copy of a buffer."""
        return buffer._explain(self._library.error_of("Buffer_CopyToDevice", error))

    def _missing_copy(self, address: int, buffer: Buffer) -> None:
        """Raises `InvalidReply` for the struct at an address, in which the copy is NULL."""
        self._library.check_handles(ffi.cast(f"struct {_ARGS}*", address), HANDLES[_ARGS])
