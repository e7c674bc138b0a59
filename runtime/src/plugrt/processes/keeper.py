"""The other side of `run_apart`: a keeper process, and the child of it that runs the target.

The keeper forks before it has imported anything of note and runs none of the target's code, so
that it keeps time, collects what is printed and ends the child whatever happens there. It ends
everything when its parent does, however that ends: its standard input is a pipe that only the
parent holds. On Linux it adopts orphans, so that daemons of the child are found and ended, too.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NoReturn

UNTIL = "PLUGRT_CHILD_UNTIL"
"""The variable that says when this process must have ended, on the monotonic clock."""
STARTUP_SECONDS = 30.0
"""How long our own imports may take, before the time of the target begins."""
LOST_REPORT = 113
"""The child's exit code when the target has closed the file that the child reports to."""

_MOST_REPORT = 32 * 2**20
_MOST_NOISE = 4096
_LAST_READS = 1000
_REPORT_NUMBER = 100
_TICK = 0.5
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36

Say = Callable[..., None]


def main() -> None:
    """Reads a request from standard input and keeps the child that carries it out."""
    parent = os.getppid()
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        os._exit(0)  # the parent ended before it had asked for anything
    request = json.loads(line)
    prctl = _prctl()
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    pipes = [os.pipe() for _ in range(3)]
    keeper = os.getpid()
    child = os.fork()
    if child:
        for _, end in pipes:
            os.close(end)
        _Keeper(child, parent, request, [start for start, _ in pipes]).keep()
    os.setsid()
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != keeper:
        os._exit(0)
    _carry_out(request, _Report(_take_places([end for _, end in pipes])))


def _prctl() -> Callable[[int, int], object]:
    if sys.platform != "linux":
        return lambda option, value: None
    import ctypes

    call: Callable[[int, int], object] = ctypes.CDLL(None).prctl
    return call


# --- the child --------------------------------------------------------------------------------


def _take_places(ends: list[int]) -> int:
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
        self._identity = self._look()
        self._lock = threading.Lock()  # log records come from any thread

    def _look(self) -> tuple[int, int]:
        found = os.fstat(self._number)
        return found.st_dev, found.st_ino

    def __call__(self, **line: Any) -> None:
        try:
            if self._look() != self._identity:
                os._exit(LOST_REPORT)  # the number is another file's by now
            content = json.dumps(line, default=str).encode() + b"\n"
            with self._lock:
                while content:
                    content = content[os.write(self._number, content) :]
        except OSError:
            os._exit(LOST_REPORT)


def _carry_out(request: dict[str, Any], say: Say) -> None:
    import resource

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


# --- the keeper -------------------------------------------------------------------------------


class _Keeper:
    """Watches one child to its end, then ends what is left of it and tells the parent."""

    def __init__(self, child: int, parent: int, request: dict[str, Any], pipes: list[int]) -> None:
        self._child, self._parent, self._request = child, parent, request
        self._names = dict(zip(pipes, ("report", "output", "errors"), strict=True))
        self._found = {name: bytearray() for name in self._names.values()}
        self._printed = 0
        self._limit = time.monotonic() + STARTUP_SECONDS
        self._wakes = _wake_on_child()

    def keep(self) -> NoReturn:
        """Runs until the child has ended, and ends this process."""
        ended = self._watch()
        left = _end_all(self._child)
        if ended is not None:
            for _ in range(_LAST_READS):  # what was written before the end
                if not self._read_ready(0.0):
                    break
            self._tell(ended, left)
        os._exit(0)

    def _watch(self) -> tuple[str, int] | None:
        """Returns how the child ended, None if the parent has ended."""
        while True:
            ended = _look_at(self._child)
            if ended is not None:
                return ended
            limit = min(self._limit, self._request["until"])
            now = time.monotonic()
            if now >= limit:
                return "deadline", 0
            self._read_ready(min(_TICK, limit - now))
            # Another process may hold a copy of the pipe by accident: so the parent is asked for.
            if self._parent_is_gone() or os.getppid() != self._parent:
                return None

    def _parent_is_gone(self) -> bool:
        ready, _, _ = select.select([0], [], [], 0)
        return bool(ready) and not os.read(0, 1)

    def _read_ready(self, seconds: float) -> bool:
        """Waits for something to happen, reads what was written; whether anything was."""
        ready, _, _ = select.select([*self._names, 0, self._wakes], [], [], seconds)
        if self._wakes in ready:
            os.read(self._wakes, 512)
        written = [number for number in ready if number in self._names]
        for number in written:
            self._read(number)
        return bool(written)

    def _read(self, number: int) -> None:
        name = self._names[number]
        content = os.read(number, 2**16)
        if not content:
            del self._names[number]
            return
        if name == "report":
            if not self._found[name]:  # the imports are done: the target's time begins
                self._limit = time.monotonic() + self._request["seconds"]
            if len(self._found[name]) < _MOST_REPORT:
                self._found[name] += content
            return
        if name == "output":
            self._printed += len(content)
        self._found[name] += content
        del self._found[name][:-_MOST_NOISE]

    def _tell(self, ended: tuple[str, int], left: int) -> None:
        last = {
            "ended": ended,
            "left": left,
            "printed": self._printed,
            "output": self._found["output"].decode(errors="replace"),
            "errors": self._found["errors"].decode(errors="replace"),
        }
        content = bytes(self._found["report"]) + b"\n" + json.dumps(last).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):
            while content:
                content = content[os.write(1, content) :]


def _wake_on_child() -> int:
    """Returns a descriptor that can be read when a child has ended or stopped."""
    wakes, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    return wakes


def _look_at(child: int) -> tuple[str, int] | None:
    pid, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED)
    if not pid:
        return None
    if os.WIFSTOPPED(status):  # nobody would have it go on
        return "stopped", os.WSTOPSIG(status)
    if os.WIFSIGNALED(status):
        return "signal", os.WTERMSIG(status)
    return "exit", os.WEXITSTATUS(status)


def _end_all(child: int) -> int:
    """Ends the child and its descendants; returns how many of those were alive after it."""
    ended: set[int] = set()
    until = time.monotonic() + 5  # a process that waits for a device cannot be ended
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            os.killpg(child, signal.SIGKILL)
        for pid in _living_children():
            ended.add(pid)
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            break
        time.sleep(0.002)
    return len(ended - {child})


def _living_children() -> Iterator[int]:
    """Yields the children of this process that have not ended; none where there is no /proc."""
    with contextlib.suppress(OSError):
        for name in filter(str.isdecimal, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                state, parent = file.read().rpartition(b")")[2].split()[:2]
                if int(parent) == os.getpid() and state != b"Z":
                    yield int(name)
