"""`Process`: a traced process with its libraries, counts of calls and handles, and findings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from plugrt_sdk.tracing.journal import Record


@dataclass(slots=True)
class FunctionCounts:
    """The calls of one function; times in nanoseconds, within the library alone."""

    calls: int = 0
    errors: int = 0
    total: int = 0
    longest: int = 0

    def add(self, duration: int, failed: bool) -> None:
        """Counts one call."""
        self.calls += 1
        self.errors += failed
        self.total += duration
        self.longest = max(self.longest, duration)

    @property
    def mean(self) -> float:
        """The mean time of a call."""
        return self.total / self.calls if self.calls else 0.0


@dataclass(slots=True)
class Process:
    """One process; `add` accepts its records in the order of the file."""

    pid: int = 0
    parent: int = 0
    command: tuple[str, ...] = ()
    begin: int = 0
    end: int | None = None
    """When its exit handlers had run; None for one that was killed or ended by ``os._exit``."""
    libraries: list[Record] = field(default_factory=list)
    functions: dict[str, FunctionCounts] = field(default_factory=dict)
    handles: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Type to (created, destroyed); known once it ended."""
    findings: list[Record] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unfinished: dict[int, Record] = field(default_factory=dict)
    """Calls that have not returned."""

    def add(self, record: Record) -> None:
        """Takes one record of the journal."""
        if "call" in record and "ns" in record and "function" in record:
            self._add_call(record)
        elif "begin" in record:
            self.unfinished[record["begin"]] = record
        elif "finding" in record:
            self.findings.append(record)
        elif "note" in record:
            self.notes.append(record["text"])
        elif "library" in record:
            self.libraries.append(record)
        elif "process" in record:
            self.pid, self.parent = record["process"], record["parent"]
            self.command, self.begin = tuple(record["command"]), record["time"]
        elif "counts" in record:
            self._add_counts(record["counts"])
        elif "end" in record:
            self.end = record["end"]
            self.handles = {name: (made, gone) for name, (made, gone) in record["handles"].items()}

    def _add_call(self, record: Record) -> None:
        self.unfinished.pop(record["call"], None)
        counts = self.functions.setdefault(record["function"], FunctionCounts())
        counts.add(record["ns"], "error" in record)

    def _add_counts(self, counts: dict[str, list[int]]) -> None:
        """Takes the tracer's own counts, which are written when the process ends."""
        for name, numbers in counts.items():
            self.functions[name] = FunctionCounts(*numbers)

    def facts(self) -> dict[str, Any]:
        """Returns what is known as plain data, for JSON; without the calls."""
        return {
            "pid": self.pid,
            "parent": self.parent,
            "command": list(self.command),
            "begin_ns": self.begin,
            "end_ns": self.end,
            "libraries": [_library(record) for record in self.libraries],
            "functions": {
                name: {
                    "calls": counts.calls,
                    "errors": counts.errors,
                    "total_ns": counts.total,
                    "longest_ns": counts.longest,
                }
                for name, counts in sorted(self.functions.items())
            },
            "handles": {
                name: {"created": made, "destroyed": gone, "alive": made - gone}
                for name, (made, gone) in sorted(self.handles.items())
            },
            "findings": [_finding(record) for record in self.findings],
            "notes": self.notes,
            "unfinished": [
                {"call": call, "function": record["function"], "thread": record["thread"]}
                for call, record in self.unfinished.items()
            ],
        }


def _library(record: Record) -> Record:
    left_out = ("time",)
    return {key: value for key, value in record.items() if key not in left_out}


def _finding(record: Record) -> Record:
    kept = {"kind": record["finding"]}
    return kept | {
        key: record[key] for key in ("whose", "call", "function", "text") if key in record
    }
