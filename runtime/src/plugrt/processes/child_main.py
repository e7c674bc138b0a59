"""`run_request`: runs the target of `run_in_child` in its process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from importlib import import_module
from typing import Any

UNTIL = "PLUGRT_CHILD_UNTIL"
"""The environment variable with this process's deadline, on the monotonic clock."""
STARTUP_SECONDS = 30.0
"""The time for plugrt's own imports, in seconds, before the target's time begins."""
LOST_REPORT = 113
"""The child's exit code if the target has closed the file for reports."""

_REPORT_NUMBER = 100


def _redirect_streams(ends: list[int]) -> int:
    """Makes the pipes stdout and stderr; returns the descriptor for reports."""
    import fcntl

    report, output, errors = ends
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, place in ((nothing, 0), (output, 1), (errors, 2)):
        os.dup2(number, place)
    # A high number, so that a target that closes or reuses small numbers does not affect it.
    high = fcntl.fcntl(report, fcntl.F_DUPFD_CLOEXEC, _REPORT_NUMBER)
    os.closerange(3, high)
    return high


class _Report:
    """Writes lines of JSON to the keeper, unbuffered."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._identity = self._identify()
        self._process = os.getpid()
        self._lock = threading.Lock()  # log records come from any thread

    def _identify(self) -> tuple[int, int]:
        found = os.fstat(self._number)
        return found.st_dev, found.st_ino

    def __call__(self, **line: object) -> None:
        if os.getpid() != self._process:
            os._exit(0)  # a copy that a library's fork() made, which would report all twice
        try:
            if self._identify() != self._identity:
                os._exit(LOST_REPORT)  # the descriptor is another file now
            # Begins a new line, in case a library wrote to this descriptor.
            content = b"\n" + json.dumps(line, default=str).encode() + b"\n"
            with self._lock:
                while content:
                    content = content[os.write(self._number, content) :]
        except OSError:
            os._exit(LOST_REPORT)


def run_request(request: dict[str, Any], pipes: list[int]) -> None:
    """Calls the target of a request in this process, which then exits normally.

    ``pipes`` receive the target's reports, stdout and stderr.
    """
    import resource

    say = _Report(_redirect_streams(pipes))
    seconds = request["seconds"]
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    # If memory runs out, the kernel ends this process first. No limit on the address space:
    # libraries for accelerators map hundreds of gigabytes that they never use.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    # Ends this process where the keeper's death does not (on Linux it does).
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, STARTUP_SECONDS + seconds + 30)
    module, _, name = request["target"].partition(":")
    target = getattr(import_module(module), name)
    until = min(time.monotonic() + seconds, request["until"])
    os.environ[UNTIL] = repr(until)
    say(ready=True)
    target(request["argument"], say)
