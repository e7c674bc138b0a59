"""`OtherCore`: a process in which plugrt makes calls in Python, on request.

One run can thus measure it in turn with this process, where calls are in the compiled core.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any, Self

from harness import Timer


class OtherCore:
    """Runs a script with ``--serve yes``, which calls `serve`."""

    def __init__(self, script: str) -> None:
        command = [sys.executable, script, "--serve", "yes"]
        self._child = subprocess.Popen(
            command, env={**os.environ, "PLUGRT_CORE": "python"}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def timer(self, question: str) -> Timer:
        """Returns the timer of a measurement, which the script's process finds by its name."""
        return lambda count: self._ask(question, count)

    def _ask(self, question: str, count: int) -> float:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps([question, count]) + "\n")
        self._child.stdin.flush()
        answer = self._child.stdout.readline()
        if not answer:
            raise SystemExit(f"the process with calls in Python ended at {question!r}")
        return float(json.loads(answer))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self._child.communicate()  # closing its input ends the process


def serve(make_timer: Callable[[str], Timer]) -> None:
    """Answers each input line, a measurement and a number of calls, with the seconds."""
    timers: dict[str, Timer] = {}
    for line in sys.stdin:
        question, count = json.loads(line)
        if question not in timers:
            timers[question] = make_timer(question)
        print(json.dumps(timers[question](count)), flush=True)
