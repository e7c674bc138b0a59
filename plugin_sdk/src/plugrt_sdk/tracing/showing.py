"""`Showing`: the output of `plugrt trace`, while a program runs and when it has ended."""

from __future__ import annotations

import json
import sys
from itertools import chain
from typing import Any, TextIO

from plugrt.cli.output import get_width
from plugrt_sdk.tracing.chrome import trace_events
from plugrt_sdk.tracing.journal import Record
from plugrt_sdk.tracing.processes import Process
from plugrt_sdk.tracing.text import Lines, command_line, summary

NARROWEST, WIDEST = 80, 140


class Showing:
    """Writes the records of all processes: text at once, a JSON document at the end."""

    def __init__(self, file: TextIO, form: str, *, with_calls: bool) -> None:
        self._file = file
        self._form = form
        self._keeps = with_calls and form != "text"
        self._shows = with_calls and form == "text"
        self._width = min(max(get_width(file) if file.isatty() else NARROWEST, NARROWEST), WIDEST)
        self._kept: dict[int, tuple[Process, list[Record]]] = {}
        self._lines: dict[int, Lines] = {}
        self._begin: int | None = None
        self._shown: Process | None = None

    def add(self, process: Process, record: Record) -> None:
        """Writes a record as text, or keeps it for the document."""
        if self._begin is None:
            self._begin = record.get("time")
        if self._keeps:
            self._kept.setdefault(id(process), (process, []))[1].append(record)
        if self._shows:
            self._show(process, self._lines_of(process).lines(record))

    def _lines_of(self, process: Process) -> Lines:
        return self._lines.setdefault(id(process), Lines(self._begin or 0, self._width))

    def _show(self, process: Process, lines: Any) -> None:
        for line in lines:
            if self._shown is not process:
                self._shown = process
                title = f"--- process {process.pid}: {command_line(process)}"
                self._print(title[: self._width])
            self._print(line)

    def _print(self, line: str) -> None:
        self._file.write(f"{line}\n")

    def finish(self, processes: list[Process], facts: dict[str, Any]) -> None:
        """Writes the JSON document, or in text form the unfinished calls; the summary on stderr."""
        if self._form == "text":
            for process in processes:
                for record in process.unfinished.values():
                    self._show(process, self._lines_of(process).format_unfinished(record))
        else:
            json.dump(self._document(processes, facts), self._file, indent=1)
            self._file.write("\n")
        self._file.flush()
        if processes:
            print(file=sys.stderr)
        for line in _summaries(processes, facts):
            print(line, file=sys.stderr)

    def _document(self, processes: list[Process], facts: dict[str, Any]) -> dict[str, Any]:
        if self._form == "chrome":
            return trace_events(self._kept.values())
        found = []
        for process in processes:
            _, records = self._kept.get(id(process), (process, []))
            calls = [record for record in records if "call" in record and "ns" in record]
            found.append({**process.facts(), "calls": calls})
        return {"plugrt_trace": 1, **facts, "processes": found}


def _summaries(processes: list[Process], facts: dict[str, Any]) -> list[str]:
    width = min(max(get_width(sys.stderr) if sys.stderr.isatty() else NARROWEST, NARROWEST), WIDEST)
    shown = [[*summary(process, width, facts["checked"]), ""] for process in processes]
    return list(chain.from_iterable(shown))
