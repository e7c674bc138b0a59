"""The keeper process of `run_in_child`: its child runs the target, and it watches that child.

The keeper forks before any large import and runs none of the target's code. It keeps the deadline,
collects output, and ends the child whatever happens there. It ends everything when its parent ends
in any way: its standard input is a pipe that only the parent holds. On Linux it adopts orphans, so
daemons of the child are also found and ended.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from plugrt.processes.child_main import STARTUP_SECONDS, run_request

_MAX_REPORT = 32 * 2**20
_MAX_NOISE = 4096
_LAST_READS = 1000
_TICK = 0.5
_WITHIN = b'{"within": '
"""The start of a line that sets a limit; see `run_in_child`."""
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def main() -> None:
    """Reads a request from standard input, and watches the child that runs it."""
    parent = os.getppid()
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        os._exit(0)  # the parent ended before it sent a request
    request = json.loads(line)
    prctl = find_prctl()
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
    run_request(request, [end for _, end in pipes])


def find_prctl(system: str = sys.platform) -> Callable[[int, int], object]:
    """Returns Linux's ``prctl``; on other systems, a function that does nothing."""
    if system != "linux":
        return lambda option, value: None
    import ctypes

    call: Callable[[int, int], object] = ctypes.CDLL(None).prctl
    return call


class _Keeper:
    """Watches one child until it ends, ends its descendants, and reports to the parent."""

    def __init__(self, child: int, parent: int, request: dict[str, Any], pipes: list[int]) -> None:
        self._child, self._parent, self._request = child, parent, request
        self._names = dict(zip(pipes, ("report", "output", "errors"), strict=True))
        self._found = {"output": bytearray(), "errors": bytearray()}
        self._printed = self._reported = 0
        self._line = b""
        """The part of the report's last line that has arrived."""
        self._last = math.inf
        self._limit = time.monotonic() + STARTUP_SECONDS
        self._wakes = _wake_on_child()

    def keep(self) -> NoReturn:
        """Runs until the child has ended, and ends this process."""
        try:
            ended = self._watch()
        finally:
            left = _end_all(self._child)
        if ended is not None:
            for _ in range(_LAST_READS):  # output written before the end
                if not self._read_ready(0.0):
                    break
            self._report(ended, left)
        os._exit(0)

    def _watch(self) -> tuple[str, int] | None:
        """Returns how the child ended, None if the parent has ended."""
        while True:
            ended = _poll_child(self._child)
            if ended is not None:
                return ended
            limit = min(self._limit, self._request["until"])
            now = time.monotonic()
            if now >= limit:
                return "deadline", 0
            self._read_ready(min(_TICK, limit - now))
            # Another process may hold a copy of the pipe by accident: so the parent's id is
            # checked.
            if self._is_parent_gone() or os.getppid() != self._parent:
                return None

    def _is_parent_gone(self) -> bool:
        ready, _, _ = select.select([0], [], [], 0)
        return bool(ready) and not os.read(0, 1)

    def _read_ready(self, seconds: float) -> bool:
        """Waits for output or an event and reads the output; returns whether there was any."""
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
            if not self._reported:  # the imports are done: the target's time begins
                self._limit = self._last = time.monotonic() + self._request["seconds"]
            self._pass_on(content)
            return
        self._found[name] += content
        if name == "output":  # keeps the beginning of stdout and the end of stderr
            self._printed += len(content)
            del self._found[name][_MAX_NOISE:]
        else:
            del self._found[name][:-_MAX_NOISE]

    def _pass_on(self, content: bytes) -> None:
        """Writes a part of the report to the parent, and notes the limits that its lines state."""
        self._reported += len(content)
        if self._reported > _MAX_REPORT:
            return
        _write(content)
        *lines, self._line = (self._line + content).split(b"\n")
        for line in lines:
            if line.startswith(_WITHIN):
                # Another library may have written to the descriptor, even such a line.
                with contextlib.suppress(ValueError, TypeError):
                    seconds = float(json.loads(line)["within"])
                    self._limit = min(self._last, time.monotonic() + seconds)

    def _report(self, ended: tuple[str, int], left: int) -> None:
        last = {
            "ended": ended,
            "left": left,
            "printed": self._printed,
            "output": self._found["output"].decode(errors="replace"),
            "errors": self._found["errors"].decode(errors="replace"),
        }
        _write(b"\n" + json.dumps(last).encode() + b"\n")


def _write(content: bytes) -> None:
    """Writes to the parent, if it is still there."""
    with contextlib.suppress(BrokenPipeError):
        while content:
            content = content[os.write(1, content) :]


def _wake_on_child() -> int:
    """Returns a descriptor that can be read when a child has ended or stopped, or on a signal."""
    wakes, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGHUP):  # the child is ended first
        signal.signal(number, lambda number, frame: sys.exit(1))
    return wakes


def _poll_child(child: int) -> tuple[str, int] | None:
    pid, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED)
    if not pid:
        return None
    if os.WIFSTOPPED(status):  # nothing would continue it
        return "stopped", os.WSTOPSIG(status)
    if os.WIFSIGNALED(status):
        return "signal", os.WTERMSIG(status)
    return "exit", os.WEXITSTATUS(status)


def _end_all(child: int) -> int:
    """Ends the child and its descendants; returns how many of those were alive after it."""
    ended: set[int] = set()
    until = time.monotonic() + 5  # a process blocked on a device cannot be ended
    while time.monotonic() < until:
        for pid in _find_living_children():
            ended.add(pid)
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):  # without /proc, at least its process group
            os.killpg(child, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            break
        time.sleep(0.002)
    return len(ended - {child})


def _find_living_children() -> Iterator[int]:
    """Yields the children of this process that have not ended; none without ``/proc``."""
    with contextlib.suppress(OSError):
        for name in filter(str.isdecimal, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                state, parent = file.read().rpartition(b")")[2].split()[:2]
                if int(parent) == os.getpid() and state != b"Z":
                    yield int(name)
