"""Lists comparisons in the conformance kit's checks that a plugin passed without reaching them.

``python -m cpu.sdk.compared_lines KIND NAME OPTIONS SKIPPED`` runs the checks on a `Target` in this
process and prints a JSON object: for each function in ``plugrt_sdk/conformance/checks`` that a
passing check called, the lines with a comparison that no passing check ran.
"""

from __future__ import annotations

import ast
import json
import os
import sys
import threading
from collections.abc import Collection, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from plugrt_sdk.conformance import Needs, PluginSubject, registry
from plugrt_sdk.conformance import checks as package
from plugrt_sdk.conformance.judge import judge
from plugrt_sdk.conformance.target import Target
from plugrt_sdk.conformance.verdict import Verdict

FOLDER = str(Path(package.__file__).parent)
ONE_BODY_FOR_MANY = ("operations.", "sizes.", "composites.", "random.", "installed.")
"""Chapters whose hundreds of checks share a body, and the chapter of the kit's own tests."""
Lines = dict[str, set[int]]


class Trace:
    """Records the lines of the checks' modules that run, in any thread."""

    def __init__(self) -> None:
        self.lines: Lines = {}

    def begin(self) -> None:
        """Clears the records and starts."""
        self.lines = {}
        threading.settrace(self._enter)
        sys.settrace(self._enter)

    def end(self) -> Lines:
        """Stops; returns the recorded lines by file."""
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        return self.lines

    def _enter(self, frame: FrameType, event: str, argument: object) -> Any:
        return self._step if frame.f_code.co_filename.startswith(FOLDER) else None

    def _step(self, frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            self.lines.setdefault(frame.f_code.co_filename, set()).add(frame.f_lineno)
        return self._step


def passed_lines(target: Target, skipped: Collection[str]) -> Lines:
    """Runs the checks; returns the lines that ran in those that passed."""
    subject, trace, found = PluginSubject(target), Trace(), Lines()
    for name, check in registry.checks().items():
        if name.startswith(ONE_BODY_FOR_MANY) or name in skipped or check.needs is Needs.PROCESS:
            continue
        if check.slow:
            continue
        trace.begin()
        verdict = judge(check, subject).verdict
        lines = trace.end()
        if verdict is Verdict.PASS:
            for file, numbers in lines.items():
                found.setdefault(file, set()).update(numbers)
    return found


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields the statements of a body, and the nested ones, but for error handlers."""
    for statement in body:
        yield statement
        for field in ("body", "orelse", "finalbody"):
            yield from statements(getattr(statement, field, []))


def is_comparison(statement: ast.stmt) -> bool:
    """Whether a statement is a call that raises `Mismatch` depending on its arguments."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return False
    always = bool(call.args) and isinstance(call.args[0], ast.Constant)
    return "expect" in call.func.id and not always


def unreached(lines: Lines) -> dict[str, list[str]]:
    """Returns the comparisons that were not run, for each function that was run."""
    found: dict[str, list[str]] = {}
    for file, run in lines.items():
        text = Path(file).read_text("utf-8")
        for function in ast.walk(ast.parse(text)):
            if not isinstance(function, ast.FunctionDef):
                continue
            body = list(statements(function.body))
            left = [s for s in body if is_comparison(s) and s.lineno not in run]
            if left and any(s.lineno in run for s in body):
                name = f"{Path(file).stem}.{function.name}"
                found[name] = [text.splitlines()[s.lineno - 1].strip() for s in left]
    return found


def main(kind: str, name: str, options: str, skipped: str) -> None:
    """Prints the result of `unreached`, and exits although a plugin may have left threads."""
    found = unreached(passed_lines(Target(kind, name, json.loads(options)), json.loads(skipped)))
    print(json.dumps(found))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
