"""The child process of ``plugrt doctor``: starts backends as a program would, and keeps a journal.

Whatever the plugins do here (abort, hang, exit), the journal says what was going on.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import IO, Any

from plugrt.errors import PlugrtError
from plugrt.plugins.backends import initialise
from plugrt.plugins.record import Record
from plugrt.plugins.registry import Registry, default_registry


def key(record: Record) -> list[str]:
    """What tells a row from others, in the parent's table and in the child's."""
    return [str(record.source), record.name, record.distribution, record.value]


class _Journal(logging.Handler):
    def __init__(self, stream: IO[str]) -> None:
        super().__init__(logging.WARNING)
        self._stream = stream

    def write(self, **entry: Any) -> None:
        """Appends an entry; flushed, as the next step may end the process."""
        self._stream.write(json.dumps(entry) + "\n")
        self._stream.flush()

    def emit(self, record: logging.LogRecord) -> None:
        self.write(warning=record.getMessage())


def main(journal_path: str, registry: Registry | None = None) -> None:
    """Starts what the settings ask for and writes steps, warnings and the outcome as JSON lines."""
    registry = registry or default_registry()
    with open(journal_path, "w", encoding="utf-8") as stream:
        journal = _Journal(stream)
        logger = logging.getLogger("plugrt")
        logger.addHandler(journal)
        logger.propagate = False
        registry.listener = lambda text, record: journal.write(
            step=text, of=key(record) if record else None
        )
        try:
            choice = initialise(registry)
            outcome: dict[str, Any] = {"chosen": list(choice.names), "why": choice.why}
        except PlugrtError as error:
            outcome = {"chosen": [], "error": str(error)}
        counts = {r.name: len(r.client.devices()) for r in registry.records if r.client}
        rows = [{**r.as_dict(), "key": key(r)} for r in registry.records]
        journal.write(done={**outcome, "devices": counts, "rows": rows})


if __name__ == "__main__":
    main(sys.argv[1])
