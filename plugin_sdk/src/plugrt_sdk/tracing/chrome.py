"""Calls as Chrome's trace events, which Perfetto and chrome://tracing show.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from plugrt_sdk.tracing.journal import Record
from plugrt_sdk.tracing.processes import Process
from plugrt_sdk.tracing.text import command_line, error_code_name, finding_text


def trace_events(recorded: Iterable[tuple[Process, Iterable[Record]]]) -> dict[str, Any]:
    """Returns the document: an event for each call, callback and finding; µs from the beginning."""
    items = [(process, list(records)) for process, records in recorded]
    begin = min((process.begin for process, _ in items), default=0)
    events: list[Record] = []
    for process, records in items:
        events.append(_metadata(process, "process_name", 0, command_line(process)))
        for record in records:
            events += _events(process, record, begin)
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _metadata(process: Process, kind: str, thread: int, name: str) -> Record:
    return {"ph": "M", "pid": process.pid, "tid": thread, "name": kind, "args": {"name": name}}


def _events(process: Process, record: Record, begin: int) -> Iterator[Record]:
    event = {
        "pid": process.pid,
        "tid": record.get("thread", process.pid),
        "ts": (record.get("time", begin) - begin) / 1000,
    }
    if "finding" in record:
        text = finding_text(record)
        yield event | {"ph": "i", "s": "g", "cat": "finding", "name": text, "args": {}}
    elif "ns" in record:
        name = record.get("function") or f"{record['callback']} (callback)"
        yield event | {
            "ph": "X",
            "dur": record["ns"] / 1000,
            "cat": "error" if "error" in record else name.split("_")[0],
            "name": name,
            "args": _arguments(record),
        }


def _arguments(record: Record) -> Record:
    found = dict(record.get("in", {})) | dict(record.get("out", {}))
    if "error" in record:
        found["error"] = f"{error_code_name(record['code'])}: {record['message']}"
    return found | {"call": record["call"]}
