"""`DriverCopies`: copies between GPUs' memory and the host's, on streams, by the CUDA driver.

With them Python functions that programs call get arrays of the host's memory
(`plugrt.capi.library.stream_copies.StreamCopies`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.errors import Internal
from plugrt.plugins.log import logger

_POINTER = ctypes.c_void_p
_ADDRESS = ctypes.c_uint64  # CUdeviceptr, on every machine that CUDA 12 runs on
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cuStreamGetCtx": (_POINTER, ctypes.POINTER(_POINTER)),
    "cuCtxPushCurrent_v2": (_POINTER,),
    "cuCtxPopCurrent_v2": (ctypes.POINTER(_POINTER),),
    "cuMemcpyDtoHAsync_v2": (_POINTER, _ADDRESS, ctypes.c_size_t, _POINTER),
    "cuMemcpyHtoDAsync_v2": (_ADDRESS, _POINTER, ctypes.c_size_t, _POINTER),
    "cuStreamSynchronize": (_POINTER,),
    "cuGetErrorName": (ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)),
    "cuGetErrorString": (ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)),
}


class DriverCopies:
    """The driver's copies; any thread may make them, whatever CUDA context it has.

    Calls release the interpreter's lock. Raises `OSError` where the driver cannot be loaded, and
    `AttributeError` where it lacks a function.
    """

    def __init__(self, library: str = "libcuda.so.1") -> None:
        # A separate handle: it has the argument types, which other modules do not set.
        driver = ctypes.CDLL(library)
        for name, types in _FUNCTIONS.items():
            function = getattr(driver, name)
            function.argtypes, function.restype = types, ctypes.c_int
        self._driver = driver

    def copy_to_host(self, target: npt.NDArray[np.uint8], source: int, stream: int) -> None:
        """Begins to copy as many bytes from a GPU as ``target`` has; see `StreamCopies`."""
        what = f"copying {target.nbytes} bytes from 0x{source:x} on a GPU to the host"
        with self._context_of(stream, what):
            self._call(
                what, "cuMemcpyDtoHAsync_v2", target.ctypes.data, source, target.nbytes, stream
            )

    def copy_to_device(self, target: int, source: npt.NDArray[Any], stream: int) -> None:
        """Begins to copy the bytes of ``source`` to a GPU; see `StreamCopies`."""
        what = f"copying {source.nbytes} bytes from the host to 0x{target:x} on a GPU"
        with self._context_of(stream, what):
            self._call(
                what, "cuMemcpyHtoDAsync_v2", target, source.ctypes.data, source.nbytes, stream
            )

    def wait(self, stream: int) -> None:
        """Waits for a stream; raises the error of any work on it, also of a program's kernel."""
        what = "waiting for the program, or for a copy of its arrays, on a GPU's stream"
        with self._context_of(stream, what):
            self._call(what, "cuStreamSynchronize", stream)

    @contextmanager
    def _context_of(self, stream: int, what: str) -> Iterator[None]:
        """Makes a stream's context current in the thread within the block."""
        context = _POINTER()
        self._call(what, "cuStreamGetCtx", stream, ctypes.byref(context))
        self._call(what, "cuCtxPushCurrent_v2", context)
        try:
            yield
        except BaseException:  # Ctrl-C, too: the caller's context must be restored
            # the first failure has more information
            self._driver.cuCtxPopCurrent_v2(ctypes.byref(_POINTER()))
            raise
        self._call(what, "cuCtxPopCurrent_v2", ctypes.byref(_POINTER()))

    def _call(self, what: str, name: str, *arguments: Any) -> None:
        """Calls a function; raises `Internal` with the driver's text for any status but 0."""
        status = getattr(self._driver, name)(*arguments)
        if status:
            raise Internal(f"the CUDA driver failed at {what}: {name} returned {self._say(status)}")

    def _say(self, status: int) -> str:
        """Returns a status as a text: its number, and the driver's name and meaning for it."""
        said = [str(status)]
        for name in ("cuGetErrorName", "cuGetErrorString"):
            text = ctypes.c_char_p()
            if not getattr(self._driver, name)(status, ctypes.byref(text)) and text.value:
                said.append(text.value.decode(errors="replace"))
        return ", ".join(said)


def find_copies(library: str = "libcuda.so.1") -> DriverCopies | None:
    """Returns the driver's copies; None without a driver, or with one that is too old for them.

    The client then refuses programs that call Python; the reason is logged (``plugrt.plugins``).
    """
    try:
        return DriverCopies(library)
    except (OSError, AttributeError) as error:
        logger.debug("cuda: no copies for Python functions in programs: %s", error)
        return None
