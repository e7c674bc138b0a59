"""`timeline`: a block's events and durations as a file that Perfetto and Chrome open.

The format is Chrome's trace events: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any

from plugrt.base import files
from plugrt.errors import ArgumentError
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.monitoring import listeners
from plugrt.settings.declarations import config

if TYPE_CHECKING:
    from pathlib import Path


@with_argument_errors
def timeline(path: files.AnyPath) -> AbstractContextManager[None]:
    """A ``with`` block whose events and durations are written to ``path`` when it ends.

    The file is JSON in Chrome's trace event format: https://ui.perfetto.dev (or ``about:tracing``)
    shows it. It has the traces, lowerings, compilations, cache hits, puts, launches, waits and
    reads of all threads of the process within the block, in microseconds since its begin, under the
    names of `plugrt.monitoring` without their ``/plugrt/``. Times are the host's: a launch ends
    when the call returns, and later work of the device shows in the reads and waits for it. The
    file is also written if an exception ends the block. Blocks may be nested and run in several
    threads; each writes everything that was recorded while it was open. The first call of each
    function within the outermost block looks its program up again.

    Raises `FileRefused` (an ``OSError``) at once where ``path`` cannot be written.
    """
    return _Timeline(files.claim(path))


class _Timeline(AbstractContextManager[None]):
    def __init__(self, path: Path) -> None:
        self._path = path
        self._events: list[dict[str, Any]] = []
        self._threads: dict[int, str] = {}
        self._begin = 0.0

    def __enter__(self) -> None:
        if self._begin:
            raise ArgumentError(f"this timeline ({self._path}) was used before; make another")
        self._begin = time.perf_counter()
        listeners.register_event_listener(self._record_event)
        listeners.register_event_duration_secs_listener(self._record_duration)
        recording.begin()

    def __exit__(self, *_: object) -> None:
        recording.end()
        with suppress(ArgumentError):  # # clear_event_listeners may have been called in the block
            listeners.unregister_event_listener(self._record_event)
        with suppress(ArgumentError):
            listeners.unregister_event_duration_listener(self._record_duration)
        self._write()

    def _record_event(self, event: str, /, **kwargs: str | int) -> None:
        if event.startswith("/jax/"):  # # recorded with plugrt's name, too
            return
        self._add(event, kwargs, ph="i", s="t", ts=self._read_clock())

    def _record_duration(self, event: str, duration: float, /, **kwargs: str | int) -> None:
        if event.startswith("/jax/"):
            return
        end = self._read_clock()
        start = max(end - duration * 1e6, 0.0)  # it may have begun before the block
        self._add(event, kwargs, ph="X", ts=start, dur=end - start)

    def _read_clock(self) -> float:
        return (time.perf_counter() - self._begin) * 1e6

    def _add(self, event: str, details: dict[str, Any], **shape: object) -> None:
        thread = threading.get_native_id()
        self._threads[thread] = threading.current_thread().name
        category = event.removeprefix("/plugrt/")
        subject = details.get("fun_name") or details.get("plugin")
        self._events.append(
            {
                "name": f"{category} {subject}" if subject else category,
                "cat": category,
                "pid": os.getpid(),
                "tid": thread,
                **shape,
                "args": details,
            }
        )

    def _write(self) -> None:
        import json  # # imported late: few programs need it

        process = {
            "ph": "M",
            "pid": os.getpid(),
            "name": "process_name",
            "args": {"name": "plugrt"},
        }
        threads = [
            {"ph": "M", "pid": os.getpid(), "tid": number, "name": "thread_name",
             "args": {"name": name}}
            for number, name in self._threads.copy().items()
        ]  # fmt: skip
        events = sorted(self._events.copy(), key=lambda e: float(e["ts"]))
        content = {"traceEvents": [process, *threads, *events], "displayTimeUnit": "ms"}
        self._path.write_text(json.dumps(content, default=str) + "\n", encoding="utf-8")


class _Recording:
    """Enables recording of launches in all threads while a timeline is open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = 0
        self._before = False

    def begin(self) -> None:
        with self._lock:
            if self._open == 0:
                self._before = config.record_launches
                config.update("record_launches", True)
            self._open += 1

    def end(self) -> None:
        with self._lock:
            self._open -= 1
            if self._open == 0:
                config.update("record_launches", self._before)


recording = _Recording()
