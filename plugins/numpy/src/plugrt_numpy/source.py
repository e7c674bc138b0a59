"""`FunctionSource`: Python source of a function, made line by line and compiled."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from plugrt.frames.traceback_filter import hide_frames
from plugrt.native.finalizers import End
from plugrt_numpy.data_types import Function

FILE = "<numpy backend: "
"""The prefix of the file names of compiled functions, in tracebacks."""
hide_frames(FILE, f"{Path(__file__).parent}/")
# Process-wide: names of compiled functions in tracebacks are unique in the process.
_numbers = itertools.count()


class FunctionSource:
    """The source of one function: straight-line calls of other functions.

    A line for each call is the fastest form in Python: a loop over steps costs as much as a small
    NumPy operation. The line's comment names the operation, in tracebacks as well.

    No text of a program gets into the code: functions, variables and constants have generated
    names, and the program's own names are only in comments, which cannot end early.
    """

    def __init__(self, name: str, parameters: Sequence[str]) -> None:
        self._name = _one_line(name)
        self._lines = [f"def run({', '.join(parameters)}):"]
        self._globals: dict[str, Any] = {}

    def bind(self, value: Any, letter: str) -> str:
        """Returns a name for an object that lines refer to."""
        name = f"{letter}{len(self._globals)}"
        self._globals[name] = value
        return name

    def add(self, line: str, comment: str, dead: Sequence[str] = ()) -> None:
        """Adds a line, after which the variables in ``dead`` are dropped."""
        drop = f"; del {', '.join(dead)}" if dead else ""
        said = f"  # {_one_line(comment)}" if comment else ""
        self._lines.append(f"    {line}{drop}{said}")

    def compile(self) -> Function:
        """Returns the function."""
        text = "\n".join([*self._lines, ""])
        filename = f"{FILE}{self._name} {next(_numbers)}>"
        # An entry without a modification time stays until linecache is cleared.
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        exec(compile(text, filename, "exec"), self._globals)
        function: Function = self._globals.pop("run")
        vars(function)["_end"] = End(partial(linecache.cache.pop, filename, None))
        return function


def _one_line(text: str) -> str:
    """Returns a text without the characters that end a line, or that source must not hold."""
    return "".join(c if c.isprintable() and c.isascii() else " " for c in text)


def format_targets(targets: Sequence[str]) -> str:
    """Returns the left side of an assignment from a call: a variable, or a tuple of them."""
    return targets[0] if len(targets) == 1 else f"[{', '.join(targets)}]"
