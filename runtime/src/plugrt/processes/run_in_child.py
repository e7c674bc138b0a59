"""`run_in_child`: runs a function in a child process; crashes and hangs are results."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from plugrt.base.files import parse_json
from plugrt.processes.child_main import LOST_REPORT, STARTUP_SECONDS, UNTIL

_PROGRAM = "from plugrt.processes.keeper import main; main()"
_FRAME = re.compile(r"\[0x[0-9a-f]+\]$|^(\*\*\* )?@ +0x[0-9a-f]+|^backtrace:$")
"""A line of the stack that glibc's, absl's and Tenstorrent's functions print."""
_GRACE = 15.0
_LONGEST = 1e9
_SPARE = 1.0
_SILENCE = 2.0
"""Seconds without a report after which the keeper's state is checked."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a child ended. ``how`` is ``exit``, ``signal``, ``stopped``, ``deadline`` or ``lost``.

    ``code`` is the exit code or the signal's number; ``lines`` are the function's reports;
    ``errors`` the end of stderr, ``output`` the beginning of stdout, and ``printed`` its size in
    bytes; ``left`` the number of processes it left behind, which were ended.
    """

    how: str
    code: int = 0
    seconds: float = 0.0
    lines: tuple[dict[str, Any], ...] = ()
    errors: str = ""
    output: str = ""
    printed: int = 0
    left: int = 0

    @property
    def succeeded(self) -> bool:
        """Whether the function returned and the process ended normally."""
        return self.how == "exit" and self.code == 0

    @property
    def lost_report(self) -> bool:
        """Whether the function closed the file for reports."""
        return self.how == "exit" and self.code == LOST_REPORT

    @property
    def ending(self) -> str:
        """How the process ended, to follow "the process"."""
        match self.how:
            case "signal":
                return f"was killed by {_name(self.code)}"
            case "stopped":
                return f"was stopped by {_name(self.code)}"
            case "deadline":
                return f"had not ended after {self.seconds:.3g} s"
            case "lost":
                return f"was lost: {self.last_output(1)}".rstrip(": ")
        return f"ended with exit code {self.code}"

    def remarks(self) -> list[str]:
        """Returns side effects that may break a program, to follow "it"."""
        found = []
        if self.printed:
            start = "".join(c for c in self.output[:60] if c.isprintable())
            found.append(f"printed {self.printed} bytes to stdout: {start!r}")
        if self.left:
            found.append(f"left processes behind, which were ended ({self.left})")
        return found

    def last_output(self, lines: int = 3, most: int = 400) -> str:
        """Returns the last lines of stderr, joined, without control characters.

        Omits lines of a C++ stack if there are others: the reason precedes them.
        """
        said = [line.strip() for line in self.errors.splitlines() if line.strip()]
        text = " ".join(([line for line in said if not _FRAME.search(line)] or said)[-lines:])
        return "".join(c if c.isprintable() else " " for c in text)[-most:].strip()


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def run_in_child(
    target: str,
    argument: object,
    seconds: float,
    *,
    env: Mapping[str, str | None] | None = None,
    on_line: Callable[[dict[str, object]], None] | None = None,
) -> Outcome:
    """Runs ``target`` (``module:function``) in a child process and returns the outcome.

    The function is called with ``argument`` (after a round trip through JSON) and a function
    ``say`` that appends a line to `Outcome.lines`: ``say(key=value, …)``. It may run for
    ``seconds``, or less within another child with an earlier deadline. No process of the child is
    left when this returns, or when this process ends in any way. ``env`` are variables to set for
    the child, or to remove (None).

    ``on_line`` is called here with each line as it arrives. A line whose first key is ``within``,
    ``say(within=2.5, …)``, sets a limit in seconds from then until the next such line; ``seconds``
    stays the limit of the whole run.
    """
    until = float(os.environ.get(UNTIL, math.inf)) - _SPARE
    seconds = min(seconds, _LONGEST, max(until - time.monotonic(), 0.0))
    if seconds <= 0:
        return Outcome("deadline")
    request = {"target": target, "argument": argument, "seconds": seconds, "until": until}
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={k: v for k, v in {**os.environ, **(env or {})}.items() if v is not None},
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:  # no more processes, no memory, no interpreter
        return Outcome("lost", seconds=seconds, errors=str(error))
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with contextlib.suppress(
            BrokenPipeError
        ):  # it ended at once; its output contains the reason
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        lines, rest = [], []
        whole = STARTUP_SECONDS + seconds + _GRACE
        for line in _read_lines(process.stdout.fileno(), whole, lambda: _end_stopped(process.pid)):
            found = _parse(line)
            if found is None:
                rest.append(line)
            else:
                lines.append(found)
                if on_line is not None and "ended" not in found:
                    on_line(found)
    finally:
        _close_and_wait(process)
    return _outcome(lines, b"\n".join(rest), seconds)


def _read_lines(number: int, seconds: float, on_silence: Callable[[], str]) -> Iterator[bytes]:
    """Yields the lines of a file as they arrive, until its end or the deadline.

    ``on_silence`` is called when no line has arrived for some seconds; its result is a line, too.
    """
    deadline = time.monotonic() + seconds
    begun: list[bytes] = []
    poll = select.poll()  # select() supports numbers below 1024 only
    poll.register(number, select.POLLIN | select.POLLHUP)
    while (left := deadline - time.monotonic()) > 0:
        if not poll.poll(min(left, _SILENCE) * 1000):
            if said := on_silence():
                yield said.encode()
            continue
        if not (part := os.read(number, 2**16)):
            break
        first, *more = part.split(b"\n")
        begun.append(first)
        for line in more:
            yield b"".join(begun)
            begun = [line]
    yield b"".join(begun)


def _end_stopped(keeper: int) -> str:
    """Ends a keeper that is stopped, and with it the child; returns why, empty if it runs.

    It has a session of its own, so no terminal stops it: the child does.
    """
    with contextlib.suppress(OSError), open(f"/proc/{keeper}/stat", "rb") as file:
        if file.read().rpartition(b")")[2].split()[0] == b"T":
            os.kill(keeper, signal.SIGTERM)
            os.kill(keeper, signal.SIGCONT)
            return "it stopped the process that watches it"
    return ""


def _parse(line: bytes) -> dict[str, object] | None:
    """Returns a line's object; None where the child was ended within it, or other code wrote it."""
    try:
        found = parse_json(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _close_and_wait(process: subprocess.Popen[bytes]) -> None:
    """Closes the pipe, whereupon the keeper ends everything, and waits for the keeper."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    process.stdout.close()
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _outcome(lines: list[dict[str, Any]], rest: bytes, seconds: float) -> Outcome:
    if not lines or "ended" not in lines[-1]:
        words = rest.decode(errors="replace")
        return Outcome("lost", errors=words, lines=tuple(lines), seconds=seconds)
    last = lines.pop()
    how, code = last["ended"]
    return Outcome(
        how, code, seconds, tuple(lines), last["errors"], last["output"], last["printed"],
        last["left"],
    )  # fmt: skip
