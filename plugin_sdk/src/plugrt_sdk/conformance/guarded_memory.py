"""`Guarded`: bytes that end where the memory of the process does."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

from plugrt.capi.abi._abi import ffi

_PROT_NONE = 0


class Guarded:
    """Bytes behind which there is no memory: a function that reads on crashes.

    PJRT gives each string with its size, and none need end with a NUL.
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
        """The address of the first byte, as a ``char*``; valid as long as this object."""
        return ffi.cast("char*", self._address)
