"""`Effects`: threads, environment and open devices of a process, compared around an import."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Effects:
    """Threads, variables of the environment and devices that a process has open."""

    threads: frozenset[int] = frozenset()
    """The kernel's ids of the threads; where there is no /proc, those that Python knows."""
    environ: frozenset[tuple[str, str]] = frozenset()
    devices: frozenset[str] = frozenset()
    """The device files that are open or mapped; empty where there is no /proc."""
    names: frozenset[str] = field(default=frozenset())

    @classmethod
    def now(cls) -> Effects:
        """Returns what the process holds now."""
        return cls(frozenset(_threads()), frozenset(os.environ.items()), frozenset(_device_files()))

    def since(self, before: Effects) -> Effects:
        """Returns what is new since ``before``, removed variables included."""
        changed = self.environ ^ before.environ
        return Effects(
            self.threads - before.threads,
            changed,
            self.devices - before.devices,
            frozenset(name for name, _ in changed),
        )

    def living_threads(self) -> list[int]:
        """Returns those of the threads that have not ended since."""
        return sorted(self.threads & set(_threads()))


def _threads() -> Iterator[int]:
    try:
        yield from (int(name) for name in os.listdir("/proc/self/task"))
    except OSError:
        yield from (t.native_id or 0 for t in threading.enumerate())


_HARMLESS = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/tty", "/dev/pts/")
"""Files in /dev that are no devices, or are the terminal."""


def _device_files() -> Iterator[str]:
    """Yields the open files below /dev that are devices; shared memory is none."""
    with contextlib.suppress(OSError):
        for entry in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                path = str(entry.readlink())
                if path.startswith("/dev/") and not path.startswith((*_HARMLESS, "/dev/shm")):
                    yield path
