"""`SegmentPool`: the client's segments of shared memory, for contents of arrays."""

from __future__ import annotations

import mmap
import weakref
from collections import defaultdict
from collections.abc import Callable
from os import close as close_descriptor
from typing import Any

from plugrt_remote import wire
from plugrt_remote.segments import make_segment, segment_size

_MOST_LENT = 512 << 20
"""Bytes of segments that the server may hold before a put waits for it."""

Segment = tuple[int, mmap.mmap]
"""A segment's number, and its memory."""


class SegmentPool:
    """Segments that the server has mapped: free, lent to the server, or memory of arrays read.

    ``add(size, descriptor)`` sends a segment to the server and returns its number, ``poll()``
    handles the messages that have arrived, and ``settle()`` waits until the server has handled all.
    """

    def __init__(
        self,
        add: Callable[[int, int], int],
        poll: Callable[[], object],
        settle: Callable[[], object],
    ) -> None:
        self._add, self._poll, self._settle = add, poll, settle
        self._free: dict[int, list[Segment]] = defaultdict(list)
        self._lent: dict[int, Segment] = {}
        self._lent_bytes = self._count = 0

    def take(self, nbytes: int) -> Segment | None:
        """Returns a segment for an array.

        Returns None for a small array, and if all segments that a client may have are in use: the
        contents then go through the socket.
        """
        if nbytes < wire.SEGMENT_FROM:
            return None
        size = segment_size(nbytes)
        if not self._free[size] or self._lent_bytes + size > _MOST_LENT:
            self._poll()
        if self._lent_bytes + size > _MOST_LENT:
            self._settle()
        try:
            return self._free[size].pop()
        except IndexError:
            if self._count == wire.MOST_SEGMENTS:
                return None
        self._count += 1
        descriptor, memory = make_segment(size)
        try:
            return self._add(size, descriptor), memory
        finally:
            close_descriptor(descriptor)

    def lend(self, segment: Segment) -> None:
        """Marks a segment as used by the server, until its message `SEGMENT_FREE`."""
        self._lent[segment[0]] = segment
        self._lent_bytes += len(segment[1])

    def take_back(self, number: int) -> None:
        """Marks the segment of that number as free; the server no longer uses it."""
        segment = self._lent.pop(number, None)
        if segment is not None:
            self._lent_bytes -= len(segment[1])
            self._free[len(segment[1])].append(segment)

    def free_with(self, array: Any, segment: Segment) -> None:
        """Marks a segment as free once an array in its memory is dropped."""
        free = self._free[len(segment[1])]
        weakref.finalize(array, free.append, segment).atexit = False
