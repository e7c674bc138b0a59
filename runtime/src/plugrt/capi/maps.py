"""Which addresses of this process can be read, so that a wild pointer is refused, not followed."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path

_MAPS = Path("/proc/self/maps")


class AddressMap:
    """A snapshot of the process's readable memory; without ``/proc`` it trusts every address."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        try:
            text = _MAPS.read_text(errors="replace")
        except OSError:
            return
        for line in text.splitlines():
            span, permissions, *_ = line.split(maxsplit=2)
            if not permissions.startswith("r"):
                continue
            start, end = (int(part, 16) for part in span.split("-"))
            if self._ends and self._ends[-1] == start:
                self._ends[-1] = end
            else:
                self._starts.append(start)
                self._ends.append(end)

    def readable(self, address: int, size: int) -> bool:
        """Whether ``size`` bytes from ``address`` on can be read."""
        if not self._starts:
            return address != 0
        i = bisect_right(self._starts, address) - 1
        return i >= 0 and address + size <= self._ends[i]
