"""Reads what the tracer writes: a file of JSON lines for each process, while it grows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Record = dict[str, Any]


class Journal:
    """The file of one process. Its end is preallocated: zero bytes until records are written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def new_records(self) -> Iterator[Record]:
        """Yields the records that were written since the last call."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n") or b"\0" in line:  # still being written
                    return
                self._offset += len(line)
                yield json.loads(line.decode("utf-8", "replace"))


class Folder:
    """The journals of all processes that a program starts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._journals: dict[Path, Journal] = {}

    def new_records(self) -> Iterator[tuple[str, Record]]:
        """Yields (the journal's name, record), process by process in the order of their start."""
        for path in self._path.glob("plugrt-trace-*.jsonl"):
            self._journals.setdefault(path, Journal(path))
        for path, journal in self._journals.items():
            for record in journal.new_records():
                yield path.stem, record
