"""The child process of ``plugrt doctor``: starts backends as a program would, and keeps a journal.

Whatever the plugins do here (abort, hang, exit), the journal says what was going on.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import IO, Any

from plugrt.errors import PlugrtError, text_of
from plugrt.plugins.backends import process_backends
from plugrt.plugins.clients import Backends


class _Journal(logging.Handler):
    """Writes the steps that ``plugrt.plugins`` logs, each with its row, and all warnings."""

    def __init__(self, stream: IO[str]) -> None:
        super().__init__(logging.DEBUG)
        self._stream = stream

    def write(self, **entry: Any) -> None:
        """Appends an entry; flushed, as the next step may end the process."""
        self._stream.write(json.dumps(entry) + "\n")
        self._stream.flush()

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            self.write(warning=record.getMessage())
        elif hasattr(record, "row"):
            self.write(step=record.getMessage(), of=record.row and record.row.identity)


def main(journal_path: str, backends: Backends | None = None) -> None:
    """Starts what the settings ask for and writes steps, warnings and the outcome as JSON lines."""
    backends = backends or process_backends()
    with open(journal_path, "w", encoding="utf-8") as stream:
        journal = _Journal(stream)
        logger = logging.getLogger("plugrt")
        logger.addHandler(journal)
        logger.propagate = False
        logging.getLogger("plugrt.plugins").setLevel(logging.DEBUG)
        try:
            choice = backends.initialise()
            outcome: dict[str, Any] = {"chosen": list(choice.names), "why": choice.why}
        except PlugrtError as error:
            outcome = {"chosen": [], "error": text_of(error)}
        table = backends.table.rows
        counts = {r.name: len(r.client.devices()) for r in table if r.client}
        rows = [{**r.as_dict(), "key": r.identity} for r in table]
        journal.write(done={**outcome, "devices": counts, "rows": rows})


if __name__ == "__main__":
    main(sys.argv[1])
