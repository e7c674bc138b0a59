"""The process that runs the target of `run_in_child`."""

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
"""The variable that says when this process must have ended, on the monotonic clock."""
STARTUP_SECONDS = 30.0
"""How long our own imports may take, before the time of the target begins."""
LOST_REPORT = 113
"""The child's exit code when the target has closed the file that the child reports to."""

_REPORT_NUMBER = 100


def _redirect_streams(ends: list[int]) -> int:
    """Puts the pipes in the places of stdout and stderr; returns the number of the report's."""
    import fcntl

    report, output, errors = ends
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, place in ((nothing, 0), (output, 1), (errors, 2)):
        os.dup2(number, place)
    # High, where a target that closes or uses small numbers does not meet it.
    high = fcntl.fcntl(report, fcntl.F_DUPFD_CLOEXEC, _REPORT_NUMBER)
    os.closerange(3, high)
    return high


class _Report:
    """Writes lines of JSON to the keeper; each is out when the call returns."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._identity = self._identify()
        self._lock = threading.Lock()  # log records come from any thread

    def _identify(self) -> tuple[int, int]:
        found = os.fstat(self._number)
        return found.st_dev, found.st_ino

    def __call__(self, **line: Any) -> None:
        try:
            if self._identify() != self._identity:
                os._exit(LOST_REPORT)  # the number is another file's by now
            content = json.dumps(line, default=str).encode() + b"\n"
            with self._lock:
                while content:
                    content = content[os.write(self._number, content) :]
        except OSError:
            os._exit(LOST_REPORT)


def run_request(request: dict[str, Any], pipes: list[int]) -> None:
    """Calls the target of a request in this process, which then ends as any program does.

    ``pipes`` take what the target says and what is written to stdout and to stderr.
    """
    import resource

    say = _Report(_redirect_streams(pipes))
    seconds = request["seconds"]
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    # If memory runs out, it is this process that the kernel ends. No bound on the address space:
    # libraries for accelerators map hundreds of gigabytes that they never touch.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    # Where a death of the keeper ends nothing (it does on Linux), this does.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, STARTUP_SECONDS + seconds + 30)
    module, _, name = request["target"].partition(":")
    target = getattr(import_module(module), name)
    until = min(time.monotonic() + seconds, request["until"])
    os.environ[UNTIL] = repr(until)
    say(ready=True)
    target(request["argument"], say)
