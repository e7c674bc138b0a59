"""Sealed segments of shared memory: made by the client, mapped by the server."""

from __future__ import annotations

import fcntl
import mmap
import os

from plugrt.errors import ResourceExhausted
from plugrt_remote.values import ProtocolError

_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
_SMALLEST = 1 << 20


def segment_size(nbytes: int) -> int:
    """Returns the size of the segment for an array: a power of two, so that others can reuse it."""
    return max(_SMALLEST, 1 << (nbytes - 1).bit_length())


def make_segment(size: int) -> tuple[int, mmap.mmap]:
    """Returns a new segment: its file descriptor, which the caller closes, and the memory.

    Raises `ResourceExhausted` if the memory cannot be allocated.
    """
    descriptor = -1
    try:
        descriptor = os.memfd_create("plugrt-remote", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(descriptor, size)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
        return descriptor, mmap.mmap(descriptor, size)
    except (OSError, OverflowError, ValueError) as error:
        if descriptor >= 0:
            os.close(descriptor)
        raise ResourceExhausted(
            f"{size} bytes of shared memory cannot be allocated: {error}"
        ) from None


def map_segment(descriptor: int, size: int) -> mmap.mmap:
    """Returns the memory of a segment that a client sent, and closes the descriptor.

    Raises `ProtocolError` for a file that can be shortened: an access beyond its end would kill
    the server.
    """
    try:
        seals = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
        if not seals & fcntl.F_SEAL_SHRINK or os.fstat(descriptor).st_size != size or not size:
            raise ProtocolError(f"a segment of {size} bytes is not sealed, or has another size")
        return mmap.mmap(descriptor, size)
    except (OSError, OverflowError, ValueError) as error:
        if isinstance(error, ProtocolError):
            raise
        raise ProtocolError(f"a segment of {size} bytes cannot be mapped: {error}") from None
    finally:
        os.close(descriptor)
