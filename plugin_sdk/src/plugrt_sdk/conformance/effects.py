"""`Effects` of an import, and `ProcessState`: changes that a plugin makes to its process."""

from __future__ import annotations

import contextlib
import ctypes
import math
import operator
import os
import resource
import sys
import threading
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from plugrt.capi.probing import process_effects


@dataclass(frozen=True, slots=True)
class Effects:
    """Threads, environment variables and open devices of a process."""

    threads: frozenset[int] = frozenset()
    """The kernel's thread ids; without /proc, those that Python knows."""
    environ: frozenset[tuple[str, str]] = frozenset()
    devices: frozenset[str] = frozenset()
    """The device files that are open or mapped; empty without /proc."""
    names: frozenset[str] = field(default=frozenset())

    @classmethod
    def now(cls) -> Effects:
        """Records the present state of the process."""
        return cls(frozenset(_threads()), frozenset(os.environ.items()), frozenset(_device_files()))

    def since(self, before: Effects) -> Effects:
        """Returns what is new since ``before``, including removed variables."""
        changed = self.environ ^ before.environ
        return Effects(
            self.threads - before.threads,
            changed,
            self.devices - before.devices,
            frozenset(name for name, _ in changed),
        )

    def living_threads(self) -> list[int]:
        """Returns the threads that have started since, and have not ended."""
        return sorted(self.threads & set(_threads()))


def _threads() -> Iterator[int]:
    try:
        yield from (int(name) for name in os.listdir("/proc/self/task"))
    except OSError:
        yield from (t.native_id or 0 for t in threading.enumerate())


_HARMLESS = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/tty", "/dev/pts/")
"""Files in /dev that are not devices, or that are the terminal."""


def _device_files() -> Iterator[str]:
    """Yields the open device files below /dev, without shared memory."""
    with contextlib.suppress(OSError):
        for entry in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                path = str(entry.readlink())
                if path.startswith("/dev/") and not path.startswith((*_HARMLESS, "/dev/shm")):
                    yield path


class ProcessState:
    """The process's state that belongs to the program, not to a plugin, when this is made."""

    def __init__(self) -> None:
        self._process = process_effects.Effects()
        self._environ = _c_environ()
        self._path = list(sys.path)
        self._mask = _file_mask()
        self._limits = _limits()
        self._pipe = _Pipe()

    def signals(self) -> list[str]:
        """Returns a sentence for each change of signal handlers, blocked signals or the timer."""
        return self._process.signals()

    def arithmetic(self) -> list[str]:
        """Returns a sentence for each change of this thread's floating-point modes."""
        return self._process.arithmetic()

    def files(self) -> list[str]:
        """Returns a sentence for each change of the working folder or the umask."""
        mask = _file_mask()
        changed = [] if mask == self._mask else [f"it set the umask to {mask}"]
        return [*self._process.folder(), *changed]

    def limits(self) -> list[str]:
        """Returns a sentence for each limit of the process that has become lower."""
        now = _limits()
        return [
            f"it lowered {name} from {before} to {now[name]}"
            for name, before in self._limits.items()
            if any(map(operator.lt, now[name], before))
        ]

    def descriptors(self) -> list[str]:
        """Returns a sentence that names the program's descriptors that were closed."""
        closed = self._pipe.closed()
        return [f"it closed the descriptors {closed} of its process"] if closed else []

    def environ(self) -> list[str]:
        """Returns the names of variables that were set, changed or removed, in C or Python."""
        now = _c_environ()
        return sorted(
            name for name in now | self._environ if now.get(name) != self._environ.get(name)
        )

    def path(self) -> list[str]:
        """Returns the folders that were added to ``sys.path`` or removed from it."""
        return sorted(set(sys.path) ^ set(self._path))


def _c_environ() -> dict[str, bytes]:
    """Reads the variables from the C library, since native libraries may set them there."""
    pointer = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    found: dict[str, bytes] = {}
    i = 0
    while pointer and (entry := pointer[i]) is not None:
        name, _, value = entry.partition(b"=")
        found[os.fsdecode(name)] = value
        i += 1
    return found


def _file_mask() -> str:
    """Reads the umask, in octal digits."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("Umask:"):
                return line.split()[1]
    mask = os.umask(0o077)  # no /proc, or no descriptor is left
    os.umask(mask)
    return f"{mask:04o}"


def _limits() -> dict[str, tuple[float, float]]:
    """Returns the soft and the hard limit of each resource."""
    names = {
        getattr(resource, name): name
        for name in reversed(dir(resource))
        if name.startswith("RLIMIT_")
    }
    limits = {name: resource.getrlimit(number) for number, name in names.items()}
    return {name: (_finite(soft), _finite(hard)) for name, (soft, hard) in limits.items()}


def _finite(limit: int) -> float:
    return math.inf if limit == resource.RLIM_INFINITY else limit


class _Pipe:
    """Two open descriptors of this object, to detect a plugin that closes others' descriptors."""

    def __init__(self) -> None:
        self._ends = {number: _identify(number) for number in os.pipe()}
        weakref.finalize(self, _close, self._ends)

    def closed(self) -> list[int]:
        """Returns the descriptors that are closed, or that have become another file."""
        return sorted(set(self._ends) - set(_open_ones(self._ends)))


def _identify(number: int) -> tuple[int, int]:
    found = os.fstat(number)
    return found.st_dev, found.st_ino


def _open_ones(ends: Mapping[int, tuple[int, int]]) -> Iterator[int]:
    for number, identity in ends.items():
        with contextlib.suppress(OSError):
            if _identify(number) == identity:
                yield number


def _close(ends: Mapping[int, tuple[int, int]]) -> None:
    for number in _open_ones(ends):
        os.close(number)
