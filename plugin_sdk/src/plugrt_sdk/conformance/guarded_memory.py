"""`Guarded` and `Room`: memory that detects access beyond its bounds."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt_sdk.conformance.expect import expect

_PROT_NONE = 0
_MARGIN, _MARK = 4096, 0xA5


class Guarded:
    """Bytes before an unmapped page: a function that reads beyond them crashes.

    PJRT passes strings with their sizes, and they need not end with a NUL.
    """

    def __init__(self, content: bytes) -> None:
        page = mmap.PAGESIZE
        pages = -(-len(content) // page) or 1
        self._memory = mmap.mmap(-1, (pages + 1) * page)
        place = int(ffi.cast("uintptr_t", ffi.from_buffer(self._memory)))
        end = place + pages * page
        self._memory[pages * page - len(content) : pages * page] = content
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        if protect(end, page, _PROT_NONE) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")
        self.size = len(content)
        self._address = end - len(content)

    @property
    def pointer(self) -> Any:
        """The address of the first byte, as a ``char*``; valid while this object exists."""
        return ffi.cast("char*", self._address)


class Room:
    """The destination of a read, between margins that must not change.

    A write beyond `Guarded` memory would crash; a changed margin is found after the call and
    reported.
    """

    def __init__(self, size: int) -> None:
        self._memory = np.full(size + 2 * _MARGIN, _MARK, np.uint8)
        self._end = _MARGIN + size
        self._memory[_MARGIN : self._end] = 0

    @property
    def pointer(self) -> Any:
        """The address of the first byte, as a ``char*``; valid while this object exists."""
        return ffi.cast("char*", self._memory.ctypes.data + _MARGIN)

    def content(self) -> bytes:
        """Returns the bytes; raises `Mismatch` if a byte of the margins has changed."""
        places = np.flatnonzero(self._memory != _MARK)
        before, behind = places[places < _MARGIN], places[places >= self._end]
        expect(
            not len(before) and not len(behind),
            f"a read that writes only the {self._end - _MARGIN} bytes of its destination",
            f"{len(behind)} bytes changed behind it, and {len(before)} before it",
        )
        return self._memory[_MARGIN : self._end].tobytes()
