"""Counted copies between the memory of a made-up device, which is host memory, and the host."""

from __future__ import annotations

import ctypes
from typing import Any

from plugrt.capi.library.stream_copies import StreamCopies
from plugrt.errors import PjrtError


class MadeUpCopies(StreamCopies):
    """Copies only in `wait`, as a device may; ``calls`` lists the requests in order.

    ``failures`` maps the name of a method to the exception that it raises.
    """

    def __init__(self, **failures: PjrtError) -> None:
        self.failures = failures
        self.calls: list[tuple[str, int, int]] = []
        """(method, bytes, stream)"""
        self._begun: list[tuple[int, int, int]] = []

    def _note(self, method: str, size: int, stream: int) -> None:
        self.calls.append((method, size, stream))
        if method in self.failures:
            raise self.failures[method]

    def copy_to_host(self, target: Any, source: int, stream: int) -> None:
        assert target.flags.c_contiguous
        assert target.nbytes
        self._note("copy_to_host", target.nbytes, stream)
        self._begun.append((target.ctypes.data, source, target.nbytes))

    def copy_to_device(self, target: int, source: Any, stream: int) -> None:
        assert source.flags.c_contiguous
        assert source.nbytes
        self._note("copy_to_device", source.nbytes, stream)
        self._begun.append((target, source.ctypes.data, source.nbytes))

    def wait(self, stream: int) -> None:
        self._note("wait", 0, stream)
        begun, self._begun = self._begun, []
        for copy in begun:
            ctypes.memmove(*copy)

    @property
    def names(self) -> list[str]:
        return [name for name, *_ in self.calls]
