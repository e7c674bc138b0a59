"""Checks pointers against this process's readable and executable memory."""

from __future__ import annotations

import os
import re
from bisect import bisect_right

from plugrt.base.files import AnyPath
from plugrt.capi.abi._abi import ffi
from plugrt.errors import InvalidReply
from plugrt.lifetime.forks import call_in_child

_MAPS = "/proc/self/maps"
_LINE = r"(?m)^([0-9a-f]+)-([0-9a-f]+) (.).(.)"
"""Matches both ends of an interval, and whether it can be read and executed."""
_END = 1 << 63
"""Higher than every address, on any system that Linux runs on."""


class _Spans:
    """Sorted intervals of addresses; adjacent ones are joined."""

    def __init__(self, lines: list[tuple[str, str, str, str]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for first, end, _, _ in lines:
            start = int(first, 16)
            if self._ends and self._ends[-1] == start:
                self._ends[-1] = int(end, 16)
            else:
                self._starts.append(start)
                self._ends.append(int(end, 16))

    def __bool__(self) -> bool:
        return bool(self._starts)

    def hold(self, address: int, size: int) -> bool:
        """Whether all ``size`` bytes from ``address`` on are in one interval."""
        i = bisect_right(self._starts, address) - 1
        return i >= 0 and address + size <= self._ends[i]


class AddressMap:
    """A snapshot of the process's memory; without ``/proc`` it trusts every address."""

    def __init__(self, path: AnyPath = _MAPS) -> None:
        lines = re.findall(_LINE, _read_map(path))
        self._data = _Spans([line for line in lines if line[2] == "r"])
        self._code = _Spans([line for line in lines if line[3] == "x"])

    @property
    def is_known(self) -> bool:
        """Whether addresses are checked against a map, rather than trusted."""
        return bool(self._data)

    def readable(self, address: int, size: int) -> bool:
        """Whether ``size`` bytes from ``address`` on can be read."""
        return self._data.hold(address, size) if self._data else address != 0

    def executable(self, address: int) -> bool:
        """Whether a function can be at ``address``."""
        return self._code.hold(address, 1) if self._code else address != 0


def is_code(address: int) -> bool:
    """Whether a function can be at ``address``; reads the map again if it shows none there.

    The code of libraries stays where it is: they are opened so that they cannot be unloaded. Code
    that XLA compiles is freed with its program: see `forget_map`.
    """
    global _latest
    known = _latest is not None and _latest.executable(address)
    if not known:
        _latest = AddressMap()
        known = _latest.executable(address)
    return known


def forget_map() -> None:
    """Makes `is_code` read the map again: a library was opened, perhaps at earlier code's place."""
    global _latest
    _latest = None


# Process-wide: the memory is the process's.
_latest: AddressMap | None = None


def _read_map(path: AnyPath = _MAPS) -> str:
    """Returns the text of the map; empty if there is none."""
    try:
        with open(path, errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""


def file_at(address: int) -> str:
    """Returns the path of the file that is mapped at ``address``; empty where it is unknown."""
    for line in _read_map().splitlines():
        span, *_, path = line.split(maxsplit=5)
        start, end = (int(part, 16) for part in span.split("-"))
        if start <= address < end:
            return path if path.startswith("/") else ""
    return ""


class _OwnMemory:
    """This process's memory as a file: reading an unmapped address is an error, not a signal."""

    def __init__(self) -> None:
        self._file: int | None = None
        self._identity: tuple[int, int] | None = None
        self.reopen()

    def reopen(self) -> None:
        """Opens the file again: a descriptor from before a fork reads the parent's memory."""
        if self._file is not None and self._is_open():
            os.close(self._file)
        try:
            self._file = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
            self._identity = _identify(self._file)
            known = ffi.new("char[]", b"known")
            if os.pread(self._file, 5, int(ffi.cast("uintptr_t", known))) != b"known":
                raise OSError
        except OSError:
            self._file = None  # Some sandboxes have none: every address is trusted there.

    def _is_open(self) -> bool:
        """Whether the descriptor is still open: a library may close descriptors of others."""
        assert self._file is not None
        return _identify(self._file) == self._identity

    def read(self, address: int, size: int) -> bytes:
        """Returns the readable bytes, fewer if the memory ends; raises `OSError` if there are
        none.
        """
        if self._file is not None and not self._is_open():
            self.reopen()
        if self._file is None:
            return bytes(ffi.buffer(ffi.cast("char*", address), size))
        return os.pread(self._file, size, address)


def _identify(number: int) -> tuple[int, int] | None:
    """Returns an open file's identity; None if the descriptor is closed."""
    try:
        found = os.fstat(number)
    except OSError:
        return None
    return found.st_dev, found.st_ino


_own = _OwnMemory()
call_in_child(_own.reopen)


def is_memory(address: int, size: int) -> bool:
    """Whether the first and the last of ``size`` bytes from ``address`` on can be read."""
    if not (address > 0 and size > 0 and address + size <= _END):
        return False
    try:
        return bool(_own.read(address, 1) and _own.read(address + size - 1, 1))
    except OSError:
        return False


def read_memory(address: int, size: int) -> bytes:
    """Returns a copy of ``size`` bytes; `InvalidReply` unless all are mapped memory.

    The address comes from a library; dereferencing a wrong one would end the process.
    """
    if not size:
        return b""
    parts: list[bytes] = []
    if is_memory(address, size):
        try:
            while size and (part := _own.read(address, size)):
                parts.append(part)
                address, size = address + len(part), size - len(part)
        except (OSError, MemoryError):
            parts = []
    if size:
        raise InvalidReply(f"{size} bytes at {address:#x} are not memory of this process")
    return b"".join(parts)
