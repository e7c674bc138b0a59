"""The persistent compilation cache: executables kept in a folder between processes.

It is used if ``config.compilation_cache_dir`` names a folder, for every backend that declares
``executable_serialization``; the settings and their names are JAX's. The folder and its files
must belong to this user and be writable by nobody else, since they hold machine code. The header of
an entry has the facts that it depends on (`cache_key.Facts`); it is loaded only if all of them
match. A fault of the cache is a warning, and the program is compiled; under
``config.raise_persistent_cache_errors`` it is an error.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from plugrt import monitoring
from plugrt.base import files
from plugrt.errors import FailedPrecondition, Internal, PjrtError
from plugrt.execution.compilation.cache_key import Facts, collect_facts
from plugrt.frames.traceback_filter import warn_user
from plugrt.interface import Client, CompileOptions, LoadedExecutable, Program
from plugrt.settings.declarations import config
from plugrt.wire.sealed_bytes import SealedFormat

_SUFFIX = ".plugrt-executable"
_MOST = 2**31
"""The largest entry that is read, in bytes: XLA's own bound on an executable."""


class CacheEntry:
    """The cache file of one program, existing or not."""

    def __init__(self, client: Client, path: Path, facts: Facts, options: CompileOptions) -> None:
        self.path = path
        self._client = client
        self._facts = facts
        self._options = options
        self._refused = False

    def load(self) -> LoadedExecutable | None:
        """Returns the cached executable, or None if there is no usable one."""
        start = time.perf_counter()
        try:
            self._refused = True
            files.private_folder(self.path.parent, make=False)
            self._refused = False
            content = files.read_bytes(self.path, _MOST, own=True)
            body, compiled_in = decode_entry(content, self._facts)
            executable = self._client.deserialize_executable(body, self._options)
        except FileNotFoundError:
            self._refused = False
            self._record_miss()
            return None
        except (OSError, PjrtError, ValueError) as error:
            _fault(f"{self.path} cannot be used, and its program is compiled again", error)
            self._record_miss()
            return None
        with contextlib.suppress(OSError):
            os.utime(self.path)  # the least recently used entries go first
        self._record_hit(time.perf_counter() - start, compiled_in)
        return executable

    def store(self, executable: LoadedExecutable, seconds: float) -> None:
        """Stores an executable after a compilation of ``seconds``, if the settings' minima are met.

        Nothing is written to a folder that `load` refused: one warning per fault.
        """
        if self._refused or seconds < config.persistent_cache_min_compile_time_secs:
            return
        try:
            body = executable.executable.serialize()
            if len(body) < config.persistent_cache_min_entry_size_bytes:
                return
            files.private_folder(self.path.parent)
            files.write(self.path, encode_entry(body, self._facts, seconds))
            _make_room(self.path.parent)
        except (OSError, PjrtError) as error:
            _fault(f"the executable cannot be kept as {self.path}", error)

    def _record_hit(self, seconds: float, compiled_in: float) -> None:
        monitoring.record_event(monitoring.CACHE_HIT, platform=self._client.platform)
        monitoring.record_event(monitoring.JAX_CACHE_HIT)
        saved = compiled_in - seconds
        monitoring.record_event_duration_secs(monitoring.JAX_CACHE_SAVED, saved)
        monitoring.record_event_duration_secs(monitoring.JAX_CACHE_RETRIEVAL, seconds)

    def _record_miss(self) -> None:
        monitoring.record_event(monitoring.CACHE_MISS, platform=self._client.platform)
        monitoring.record_event(monitoring.JAX_CACHE_MISS)


def entry_for(client: Client, program: Program, options: CompileOptions) -> CacheEntry | None:
    """Returns the program's cache entry, or None if the cache is off or unsupported."""
    folder = config.compilation_cache_dir
    if not folder or not config.enable_compilation_cache:
        return None
    if not client.capabilities.executable_serialization:
        return None
    facts = collect_facts(client, program, options)
    if facts is None:
        return None
    monitoring.record_event(monitoring.JAX_CACHE_REQUEST)
    name = re.sub(r"[^\w.-]", "_", program.name, flags=re.ASCII)[:60]
    path = Path(os.path.expanduser(folder)) / f"{name}-{facts.digest()}{_SUFFIX}"
    return CacheEntry(client, path, facts, options)


def _make_room(folder: Path) -> None:
    """Removes the least recently used entries above the size limit; other processes may, too."""
    most = config.compilation_cache_max_size
    if most < 0:
        return
    entries = []
    for path in folder.glob(f"*{_SUFFIX}"):
        with contextlib.suppress(OSError):
            stated = path.stat()
            entries.append((stated.st_mtime_ns, stated.st_size, path))
    size = sum(nbytes for _, nbytes, _ in entries)
    for _, nbytes, path in sorted(entries):
        if size <= most:
            return
        with contextlib.suppress(OSError):
            path.unlink()
        size -= nbytes


def _fault(what: str, error: Exception) -> None:
    message = f"persistent compilation cache: {what} ({type(error).__name__}: {error})"
    if config.raise_persistent_cache_errors:
        raise Internal(message) from error
    warn_user(message)


# An entry is a checked header and the executable. The header holds the facts, field by field. It
# detects entries that were swapped, copied, truncated or altered, and entries of another library,
# version or processor. It is no signature: a program that can write the file can also write a
# matching header, so the folder must belong to the user alone.
@dataclass(frozen=True, slots=True)
class _Header:
    """``seconds`` is the compilation time of the program."""

    facts: Facts
    seconds: float


_ENTRY = SealedFormat(
    b"plugrt compilation cache entry", 2, _Header, "entry of the compilation cache"
)


def encode_entry(body: bytes, facts: Facts, seconds: float = 0.0) -> bytes:
    """Returns an entry: a header with these facts, then the backend's bytes.

    ``seconds`` is the compilation time of the program.
    """
    return _ENTRY.write(_Header(facts, seconds), body)


def decode_entry(content: bytes, facts: Facts) -> tuple[bytes, float]:
    """Returns the backend's bytes of an entry with exactly these facts.

    Also returns the compilation time of the program, in seconds.

    Raises `DataLoss` for an incomplete or damaged entry, `InvalidArgument` for bytes that are no
    entry, and `FailedPrecondition`, with the fields that differ, for the entry of another program,
    library or machine, or of another version of plugrt.
    """
    header, body = _ENTRY.read(content)
    stored, expected = asdict(header.facts), asdict(facts)
    if differing := [name for name in expected if stored[name] != expected[name]]:
        raise FailedPrecondition(f"it is an entry of another {' and of another '.join(differing)}")
    return bytes(body), header.seconds
