"""`compile_put`, `compile_copy`: the puts and copies of one type that the core in C makes."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi._handles import HANDLES
from plugrt.capi.abi.structs import Prepared
from plugrt.capi.buffers.buffer import Buffer
from plugrt.capi.buffers.buffer_spec import BufferSpec
from plugrt.capi.loading.library import Library
from plugrt.errors import Unimplemented
from plugrt.native.known_dtypes import KNOWN_DTYPES
from plugrt.native.native_core import core

ARGS = "struct PJRT_Client_BufferFromHostBuffer_Args"
MADE = HANDLES["PJRT_Client_BufferFromHostBuffer_Args"]
"""The handles that a put gives."""
_KNOWN = frozenset(KNOWN_DTYPES)


def is_known(dtype: np.dtype[np.generic]) -> bool:
    """Whether there is a core, and it accepts arrays of that dtype."""
    return core is not None and dtype in _KNOWN


def compile_put(spec: BufferSpec, prepared: Prepared, number: bool) -> Any:
    """Returns the core's put of arrays (or, with ``number``, Python's numbers) of the spec's type.

    ``prepared`` is the argument struct of the function, complete but for the data.
    """
    assert core is not None
    return core.Put(
        client=spec.handle.core,
        spec=spec,
        owner=_PutFaults(spec.handle.library),
        args=int(ffi.cast("uintptr_t", prepared.structs[0])),
        keep=prepared,
        dtype=spec.dtype,
        number=number,
    )


class _PutFaults:
    """Makes the exceptions of the core's failed puts."""

    __slots__ = ("_library",)

    def __init__(self, library: Library) -> None:
        self._library = library

    def _put_error(self, error: int) -> Exception:
        """Returns the exception for the address of an error."""
        return self._library.error_of("Client_BufferFromHostBuffer", error)

    def _missing_handle(self, address: int) -> None:
        """Raises `InvalidReply` for the struct at an address whose handle is NULL."""
        self._library.check_handles(ffi.cast(ARGS + "*", address), MADE)


_FUNCTIONS = ("Buffer_CopyToDevice", "Buffer_GetMemoryLayout")
_ARGS = "PJRT_Buffer_CopyToDevice_Args"


def compile_copy(spec: BufferSpec) -> object:
    """Returns the core's copy, with that spec, of arrays on another of the client's devices.

    None where there is no core, where Python calls the functions that it needs, or where the
    library has to copy in another way.
    """
    handle = spec.handle
    functions = [handle.library.slots[name] for name in _FUNCTIONS]
    if handle.library.ways.is_missing("copy to a device", "Buffer_CopyToDevice"):
        return None
    if core is None or not all(isinstance(f, ffi.CData) for f in functions):
        return None
    copy, layout, device = (
        int(ffi.cast("uintptr_t", pointer)) for pointer in (*functions, spec.device.pointer)
    )
    return core.Copy(
        client=handle.core,
        spec=spec,
        owner=_CopyFaults(handle.library),
        device=device,
        rank=len(spec.shape),
        copy=copy,
        layout=layout,
    )


class _CopyFaults:
    """Makes the exceptions of the core's failed copies."""

    __slots__ = ("_library",)

    def __init__(self, library: Library) -> None:
        self._library = library

    def _copy_error(self, error: int, buffer: Buffer) -> Exception | None:
        """Returns the exception for the address of an error, of the copy of a buffer.

        None where the library lacks such copies: Python tries the other ways.
        """
        found = self._library.error_of("Buffer_CopyToDevice", error)
        return None if isinstance(found, Unimplemented) else buffer._explain(found)

    def _missing_copy(self, address: int, buffer: Buffer) -> None:
        """Raises `InvalidReply` for the struct at an address whose copy is NULL."""
        self._library.check_handles(ffi.cast(f"struct {_ARGS}*", address), HANDLES[_ARGS])
