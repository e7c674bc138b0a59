"""Calls and summaries as text, for terminals of 80 columns and more."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from plugrt.capi.abi.declarations import ENUMS
from plugrt_sdk.tracing.journal import Record
from plugrt_sdk.tracing.processes import Process

INDENT = 24
_ADDRESS = re.compile(r"@0x[0-9a-f]+$")
_BREAKS = re.compile(r"(?<=[ (,\[/])(?=[^ ])")
"""Where a line may be broken: calls have few blanks."""


def show_duration(nanoseconds: float) -> str:
    """Returns a time in three digits and a unit, 7 characters wide at most."""
    for limit, unit in ((1e3, "ns"), (1e6, "µs"), (1e9, "ms")):
        if nanoseconds < limit:
            value = nanoseconds / (limit / 1e3)
            return f"{value:.0f} {unit}" if value >= 100 or unit == "ns" else f"{value:.3g} {unit}"
    return f"{nanoseconds / 1e9:.3g} s"


def error_code_name(code: int) -> str:
    """Returns the name of a PJRT code, or its number."""
    names = ENUMS["Error_Code"]
    return names[code] if 0 <= code < len(names) else str(code)


class Lines:
    """Turns one process's records into lines; times count from ``begin``, in milliseconds."""

    def __init__(self, begin: int, width: int) -> None:
        self._begin = begin
        self._width = width
        self._threads: dict[int, int] = {}

    def lines(self, record: Record) -> Iterator[str]:
        """Yields the lines of a record; no line for records that are only counted."""
        if "finding" in record:
            yield from self._wrap(record, f"!! {record['whose']}: {finding_text(record)}")
        elif "note" in record:
            yield from self._wrap(record, f"-- {record['text']}")
        elif "library" in record:
            yield from self._wrap(record, f"-- {library_text(record)}")
        elif "callback" in record:
            outcome = "with an error" if record["failed"] else "without an error"
            text = f"{record['callback']} calls back {outcome} (Event#{record['event']})"
            yield from self._wrap(record, text)
        elif "call" in record:
            yield from self._wrap(record, self._call(record))

    def format_unfinished(self, record: Record) -> Iterator[str]:
        """Yields the lines of a call that never returned."""
        yield from self._wrap(record, f"{record['function']}(…) did not return")

    def _call(self, record: Record) -> str:
        given = ", ".join(f"{name}={show(value)}" for name, value in record["in"].items())
        text = f"{record['function']}({given})"
        if "error" in record:
            message = " ".join(record["message"].split())
            return f"{text} -> {error_code_name(record['code'])}: {message}"
        results = ", ".join(f"{name}={show(v)}" for name, v in record.get("out", {}).items())
        return f"{text} -> {results}" if results else text

    def _wrap(self, record: Record, text: str) -> list[str]:
        thread = ""
        if "thread" in record:
            thread = f"T{self._threads.setdefault(record['thread'], len(self._threads) + 1)}"
        took = show_duration(record["ns"]) if "ns" in record else ""
        start = (record["time"] - self._begin) / 1e6
        return fill(f"{start:9.3f} {took:>7} {thread:<3} {text}", self._width, INDENT)


def fill(text: str, width: int, indent: int) -> list[str]:
    """Returns the lines of a long text; those after the first are indented."""
    lines = [""]
    for piece in _BREAKS.split(text):
        if len(lines[-1]) + len(piece.rstrip()) > width and lines[-1].strip():
            lines.append(" " * indent)
        lines[-1] += piece
        while len(lines[-1].rstrip()) > width:
            lines[-1:] = [lines[-1][:width], " " * indent + lines[-1][width:]]
    return [line.rstrip() for line in lines]


def show(value: Any) -> str:
    """Returns the text of a value of a call; handles have no addresses."""
    if isinstance(value, str):
        return (
            _ADDRESS.sub("", value) if "@0x" in value or value.endswith(" bytes") else f'"{value}"'
        )
    if isinstance(value, list):
        return f"[{','.join(map(show, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {show(item)}' for name, item in value.items())}}}"
    return json.dumps(value)  # null, true, false, a number


def library_text(record: Record) -> str:
    """Returns one sentence on a library."""
    major, minor = record["version"]
    told = record["reported_minor"]
    pretended = f" (reported as 0.{told})" if told != minor else ""
    extensions = ", ".join(record["extensions"]) or "none"
    return f"{record['library']}: PJRT C API {major}.{minor}{pretended}; extensions: {extensions}"


def finding_text(record: Record) -> str:
    """Returns a finding's kind, function and text."""
    where = f"{record['function']} (call {record['call']}): " if "function" in record else ""
    return f"{record['finding']}: {where}{record['text']}"


def command_line(process: Process) -> str:
    """Returns a process's command in one line; programs given as text have many."""
    return " ".join(" ".join(process.command).split())


def summary(process: Process, width: int, checked: bool) -> Iterator[str]:
    """Yields the lines of a process's summary."""
    yield f"process {process.pid}: {command_line(process)}"[:width]
    for record in process.libraries:
        yield from fill(library_text(record), width, 2)
    if process.functions:
        yield ""
        yield from _functions(process, width)
    if process.handles:
        yield ""
        yield from _handles(process)
    if process.end is None:
        yield ""
        yield from _describe_end(process, width)
    yield from _remarks(process, width, checked)


def _functions(process: Process, width: int) -> Iterator[str]:
    head = f"{'calls':>7} {'errors':>6} {'total':>7} {'mean':>7} {'longest':>7}"
    names = width - len(head) - 1
    yield f"{'function':<{names}} {head}"
    for name, counts in sorted(process.functions.items(), key=lambda item: -item[1].total):
        if len(name) > names:
            yield name
            name = ""
        times = (counts.total, counts.mean, counts.longest)
        shown = " ".join(f"{show_duration(time):>7}" for time in times)
        errors = counts.errors or "-"
        yield f"{name:<{names}} {counts.calls:>7} {errors:>6} {shown}"


def _handles(process: Process) -> Iterator[str]:
    names = max(16, *map(len, process.handles))
    yield f"{'handle':<{names}} {'created':>8} {'destroyed':>9} {'alive':>6}"
    for name, (made, gone) in sorted(process.handles.items()):
        yield f"{name:<{names}} {made:>8} {gone:>9} {made - gone or '-':>6}"


def _describe_end(process: Process, width: int) -> Iterator[str]:
    text = "It ended without exit handlers (killed, or os._exit): what it left alive is not known."
    if process.unfinished:
        names = ", ".join(record["function"] for record in process.unfinished.values())
        text += f" Not returned: {names}."
    yield from textwrap.wrap(text, width)


def _remarks(process: Process, width: int, checked: bool) -> Iterator[str]:
    if checked:
        count = len(process.findings)
        yield ""
        yield f"{count} finding{'s' if count != 1 else ''}" + (":" if count else ".")
    for record in process.findings:
        text = f"- {record['whose']}: {finding_text(record)}"
        yield from textwrap.wrap(text, width, subsequent_indent="  ")
    for text in process.notes:
        yield from textwrap.wrap(f"note: {text}", width, subsequent_indent="  ")
