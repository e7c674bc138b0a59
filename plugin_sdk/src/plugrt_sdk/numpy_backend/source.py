"""`FunctionSource`: Python source of a function, made line by line and compiled."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Sequence
from typing import Any

from plugrt_sdk.numpy_backend.data_types import Function

_numbers = itertools.count()


class FunctionSource:
    """The source of one function: straight-line calls of other functions.

    A line a call is the cheapest that Python has: a loop over steps costs as much as a small
    NumPy operation does. The line's comment names the operation, in tracebacks as well.
    """

    def __init__(self, name: str, parameters: Sequence[str]) -> None:
        self._name = name
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
        self._lines.append(f"    {line}{drop}  # {comment}" if comment else f"    {line}{drop}")

    def compile(self) -> Function:
        """Returns the function."""
        text = "\n".join([*self._lines, ""])
        filename = f"<numpy backend: {self._name} {next(_numbers)}>"
        # An entry without a modification time stays until linecache is cleared.
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        exec(compile(text, filename, "exec"), self._globals)
        function: Function = self._globals.pop("run")
        return function


def assigned(targets: Sequence[str]) -> str:
    """Returns the left side of an assignment from a call: a variable, or a tuple of them."""
    return targets[0] if len(targets) == 1 else f"[{', '.join(targets)}]"
