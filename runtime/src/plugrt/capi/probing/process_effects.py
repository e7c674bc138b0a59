"""`Effects`: detects changes that a library made to its process (signals, streams…)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time

from plugrt.errors import PluginBroken

_WATCHED = {
    signal.SIGINT: "so that Ctrl-C may do nothing, or end the program at once",
    signal.SIGPIPE: "so that a closed pipe may end the program",
    signal.SIGCHLD: "so that the ends of child processes may be missed",
}
"""Signals whose handlers Python programs rely on. (Those of crashes are often replaced.)"""
_BLOCKED = "so that Ctrl-C or the end of a child process may be missed"
_OUTPUT = {0: "standard input", 1: "standard output", 2: "standard error"}
_SMALLEST_NORMAL = sys.float_info.min
_SIZE = 512
"""More than ``struct sigaction`` has anywhere; its first member is the handler."""


class Effects:
    """Records the state of the process when created, and reports later changes."""

    def __init__(self) -> None:
        self._folder = _folder()
        self._handlers = {number: _handler(number) for number in _WATCHED}
        self._denormals = _has_denormals()
        self._is_rounded_to_nearest = _is_rounded_to_nearest()
        self._blocked = _read_blocked_signals()
        self._alarm = _alarm_time()
        self._output = {number: _file(number) for number in _OUTPUT}

    def remarks(self) -> list[str]:
        """Returns a sentence for each change that may break a program."""
        return [*self.folder(), *self.signals(), *self.arithmetic()]

    def folder(self) -> list[str]:
        """Returns a remark if the working folder has changed."""
        now = _folder()
        return [] if now == self._folder else [f"it changed the working folder to {now}"]

    def signals(self) -> list[str]:
        """Returns remarks on changed signal handlers, blocked signals, and the timer."""
        found = []
        for number, why in _WATCHED.items():
            if _handler(number) != self._handlers[number]:
                found.append(f"it replaced the handler of {number.name}, {why}")
        if blocked := _read_blocked_signals() - self._blocked:
            found.append(f"it blocks {len(blocked)} signals in this thread, {_BLOCKED}")
        if abs(_alarm_time() - self._alarm) > 1:
            found.append("it sets the timer of its process, whose SIGALRM ends a program")
        return found

    def arithmetic(self) -> list[str]:
        """Returns remarks on changes of this thread's arithmetic."""
        found = []
        if self._denormals and not _has_denormals():
            found.append("it makes this thread take denormal numbers for zero")
        if self._is_rounded_to_nearest and not _is_rounded_to_nearest():
            found.append("it makes this thread round other than to the nearest number")
        return found

    def check_output(self) -> None:
        """Raises `PluginBroken` if a standard stream was closed or is another file now."""
        for number, name in _OUTPUT.items():
            if _file(number) != self._output[number]:
                raise PluginBroken(f"it closed the {name} of its process")


def _has_denormals() -> bool:
    return _SMALLEST_NORMAL / 2 > 0


def _is_rounded_to_nearest() -> bool:
    """Whether numbers half-way between two others go to the even one, below and above zero."""
    one, little = 1.0, sys.float_info.epsilon / 4
    return one + little == one and -one - little == -one and one - little / 4 == one


def _read_blocked_signals() -> set[int]:
    return {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())}


def _alarm_time() -> float:
    """Returns when SIGALRM is due, on the monotonic clock in seconds; 0 if it is not."""
    left = signal.getitimer(signal.ITIMER_REAL)[0]
    return time.monotonic() + left if left else 0.0


def _folder() -> str:
    with contextlib.suppress(OSError):
        return os.getcwd()
    return "one that has ended"


def _file(number: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(number)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _handler(number: int) -> bytes:
    """Returns the address of a signal's handler, also of one that Python did not set."""
    state = ctypes.create_string_buffer(_SIZE)
    ctypes.CDLL(None).sigaction(int(number), None, state)
    return state.raw[: ctypes.sizeof(ctypes.c_void_p)]
