"""`start_trace` and `stop_trace`: record events of this process and of its backends."""

from __future__ import annotations

import itertools
import os
import socket
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from plugrt import monitoring
from plugrt.base import files
from plugrt.errors import (
    ArgumentError,
    FailedPrecondition,
    FileRefused,
    PjrtError,
    PlugrtError,
    Unimplemented,
)
from plugrt.frames.argument_errors import require_flag, with_argument_errors
from plugrt.interface import Client
from plugrt.monitoring.trace_events import recording
from plugrt.plugins.log import logger
from plugrt.plugins.selection.backends import backends
from plugrt.profiler.profile_options import ProfileOptions, read_options
from plugrt.profiler.trace_files import (
    HostEvent,
    encode_trace_json,
    encode_xspace,
    has_unix_times,
)

_BELOW = "plugins/profile"  # xprof searches this folder


@with_argument_errors
def start_trace(
    log_dir: files.AnyPath,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> None:
    """Begins to record what the process traces, compiles, puts, launches, reads and annotates.

    So do the backends that have a profiler: jaxlib's cpu client, and libraries with the extension
    Profiler. `stop_trace` writes it below ``log_dir``, for ``tensorboard --logdir`` with xprof, and
    with ``create_perfetto_trace`` a ``perfetto_trace.json.gz`` beside it, which ui.perfetto.dev
    opens. ``profiler_options`` selects the events, a `ProfileOptions` or JAX's. As
    ``jax.profiler.start_trace``, but for ``create_perfetto_link``, which is refused.

    Raises `FailedPrecondition` while plugrt records another trace, or JAX records one of jaxlib's
    cpu client (if plugrt's began first, JAX raises only in ``jax.profiler.stop_trace``);
    `FileRefused` if no folder can be made in ``log_dir`` (JAX raises in ``stop_trace``);
    `ArgumentError` for a URL, and for options that plugrt lacks.
    """
    require_flag("start_trace", "create_perfetto_trace", create_perfetto_trace)
    if create_perfetto_link:
        raise ArgumentError(
            "create_perfetto_link=True would serve the trace to a public page and wait for it; "
            "plugrt serves nothing. Take create_perfetto_trace=True, and open the file "
            "perfetto_trace.json.gz that stop_trace() writes in https://ui.perfetto.dev"
        )
    if files.is_url(log_dir):
        raise ArgumentError(
            f"log_dir is {os.fsdecode(log_dir)!r}; plugrt writes traces into folders of this "
            "machine only. Name such a folder, one that the storage is mounted on, or copy the "
            "trace when it is written: TensorBoard reads it from there"
        )
    options = None if profiler_options is None else read_options(profiler_options)
    _sessions.start(Path(log_dir), options, create_perfetto_trace)


@with_argument_errors
def stop_trace() -> Path:
    """Ends the trace and returns its file, ``…/plugins/profile/TIME/HOST.xplane.pb``.

    Raises `FailedPrecondition` if no trace was begun, and `FileRefused` (an ``OSError``) if the
    file cannot be written; that error names a temporary file with the trace.
    """
    return _sessions.stop()


@contextmanager
def trace(
    log_dir: files.AnyPath,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Iterator[None]:
    """A ``with`` block between `start_trace` and `stop_trace`, with their arguments and errors."""
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


class _Session:
    """One recording of this process and its backends; ``options`` None: profilers' defaults."""

    def __init__(self, folder: Path, options: ProfileOptions | None, perfetto: bool) -> None:
        self.folder = folder
        self._perfetto = perfetto
        known = options or ProfileOptions()
        self._name, self._level = known.session_id, known.host_tracer_level
        self._events: list[HostEvent] = []
        self._threads: dict[int, str] = {}
        self._collects = begin_profiles(options)
        self._epoch, self._begin = time.time(), time.perf_counter()
        monitoring.register_event_duration_secs_listener(self._listen)
        recording.begin()

    def stop(self) -> Path:
        recording.end()
        with suppress(ArgumentError):  # clear_event_listeners may have been called meanwhile
            monitoring.unregister_event_duration_listener(self._listen)
        spaces = [space for collect in self._collects if (space := collect_profile(collect))]
        epoch = self._epoch if not spaces or any(map(has_unix_times, spaces)) else 0.0
        # Copies the events before the thread names: a thread that is still recording adds its name
        # before its event.
        spaces.append(encode_xspace(self._events.copy(), self._threads.copy(), epoch))
        return self._save(b"".join(spaces))

    def _save(self, space: bytes) -> Path:
        try:
            return self._write(self.folder, space)
        except OSError as error:
            kept = self._write(Path(tempfile.mkdtemp(prefix="plugrt-trace-")), space)
            reason = f"the trace cannot be written there: {error.strerror}; it is in {kept}"
            raise FileRefused(error.errno, reason, str(self.folder)) from error

    def _write(self, folder: Path, space: bytes) -> Path:
        path = _new_folder(folder / _BELOW, self._name) / f"{socket.gethostname()}.xplane.pb"
        path.write_bytes(space)
        if self._perfetto:
            path.with_name("perfetto_trace.json.gz").write_bytes(encode_trace_json(space))
        return path

    def _listen(self, event: str, duration: float, /, **details: str | int) -> None:
        if event.startswith("/jax/"):  # recorded with plugrt's name, too
            return
        annotated = event == monitoring.ANNOTATION
        if self._level < (1 if annotated else 2):
            return
        thread = threading.get_native_id()
        self._threads[thread] = threading.current_thread().name
        subject = details.get("fun_name") or details.get("plugin") or ""
        step = event.removeprefix("/plugrt/")
        name = str(subject) if annotated else f"{step} {subject}".strip()
        begin = max(time.perf_counter() - self._begin - duration, 0.0)
        self._events.append(HostEvent(name, thread, begin, duration, dict(details)))


class _Sessions:
    """The only recording of the process.

    Nothing here waits for another thread: a signal handler may end a trace while it interrupts the
    very thread that would be waited for.
    """

    def __init__(self) -> None:
        self._taken = threading.Lock()  # held until a trace is written
        self._running: deque[_Session] = deque()

    def start(self, folder: Path, options: ProfileOptions | None, perfetto: bool) -> None:
        if not self._taken.acquire(blocking=False):
            raise FailedPrecondition(self._explain_taken())
        try:
            _make_folder(folder / _BELOW)
            self._running.append(_Session(folder, options, perfetto))
        except BaseException:  # also for an interrupt: the lock is released
            self._taken.release()
            raise

    def stop(self) -> Path:
        try:
            session = self._running.pop()
        except IndexError:
            raise FailedPrecondition(
                "no trace is recorded; begin one with plugrt.profiler.start_trace(log_dir)"
            ) from None
        try:
            return session.stop()
        finally:
            self._taken.release()

    def _explain_taken(self) -> str:
        for session in self._running.copy():
            return (
                f"a trace is recorded already, into {session.folder}; end it with "
                "plugrt.profiler.stop_trace()"
            )
        return (
            "another thread begins a trace, or writes the one that it has ended; begin the next "
            "when its start_trace or stop_trace has returned"
        )


_sessions = _Sessions()


def _make_folder(folder: Path) -> None:
    """Makes the folder of traces first, so that a failure loses no recording."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"no trace can be written there: {error.strerror}"
        raise FileRefused(error.errno, reason, str(folder)) from error


def _new_folder(parent: Path, name: str) -> Path:
    """Makes a folder with this name, or named by the time; adds a number if it exists."""
    name = name or time.strftime("%Y_%m_%d_%H_%M_%S")
    for number in itertools.count(1):
        folder = parent / (name if number == 1 else f"{name}_{number}")
        with suppress(FileExistsError):
            folder.mkdir(parents=True)
            break
    return folder


Collect = Callable[[], bytes]
"""Ends the recording of one backend and returns its ``XSpace``."""


def _clients() -> list[Client]:
    return list({id(client): client for client in backends().values()}.values())


def begin_profiles(options: ProfileOptions | None) -> list[Collect]:
    """Starts the recordings of all backends; if one fails, stops those before it."""
    begun: list[Collect] = []
    try:
        for client in _clients():
            if collect := _begin_profile(client, options):
                begun.append(collect)
    except BaseException:  # also for an interrupt: the recordings are stopped
        for collect in begun:
            collect_profile(collect)
        raise
    return begun


def _begin_profile(client: Client, options: ProfileOptions | None) -> Collect | None:
    """Starts the recording of a backend that has a profiler.

    Raises if another recording uses the profiler. Any other failure is a warning, unless the
    options request an error.
    """
    begin: Callable[[dict[str, object]], Collect] | None = getattr(client, "begin_profile", None)
    if begin is None:
        return None
    try:
        return begin(options.of_backends() if options else {})
    except Unimplemented:  # most libraries have none
        return None
    except FailedPrecondition as error:
        raise FailedPrecondition(
            f"no trace of {client.backend_name} can begin: {error.args[0]}"
        ) from error
    except PjrtError as error:
        if options and options.raise_error_on_start_failure:
            raise
        logger.warning("the profiler of %s does not start: %s", client.backend_name, error)
        return None


def collect_profile(collect: Collect) -> bytes:
    """Ends one recording and returns its ``XSpace``; on failure warns and returns an empty one."""
    try:
        return collect()
    except PlugrtError as error:
        logger.warning("a backend's part of the trace is lost: %s", error)
        return b""
