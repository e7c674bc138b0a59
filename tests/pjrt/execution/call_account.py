"""Calls in a random order, with the results of each: ``python -m pjrt.execution.call_account``.

``SEED COUNT PLATFORM…``: COUNT steps on each platform. Prints, as JSON, the implementation of
calls, and a line for each step: its name, and its outcomes.
`tests/pjrt/execution/test_core_equality.py` compares them between the two implementations of calls.
"""

from __future__ import annotations

import gc
import json
import logging
import sys
import warnings
from pathlib import Path
from typing import Any

import plugrt
from pjrt.execution.call_outcomes import normalise
from pjrt.execution.call_sequence import CallSequence


class Records(logging.Handler):
    """Records the messages of plugrt's loggers."""

    def __init__(self, notes: list[str]) -> None:
        super().__init__()
        self.notes = notes

    def emit(self, record: logging.LogRecord) -> None:
        self.notes.append(normalise(f"{record.levelname} {record.getMessage()}"))

    def note_warning(self, message: Any, category: Any, filename: str, line: int, *_: Any) -> None:
        """Replaces `warnings.showwarning`."""
        self.notes.append(normalise(f"{category.__name__} {Path(filename).name}:{line} {message}"))


def run(platform: str, seed: str, count: int) -> list[list[str]]:
    """Returns a line for each step on a platform."""
    with plugrt.default_device(plugrt.devices(platform)[0]):
        sequence = CallSequence(platform, f"{seed} {platform}")
        handler = Records(sequence.notes)
        warnings.showwarning = handler.note_warning
        logging.getLogger("plugrt").addHandler(handler)
        try:
            return [sequence.step(number) for number in range(count)]
        finally:
            sequence.unset()
            plugrt.monitoring.clear_event_listeners()
            logging.getLogger("plugrt").removeHandler(handler)


def main() -> None:
    """Prints the results of the steps."""
    seed, count, *platforms = sys.argv[1:]
    warnings.simplefilter("always")
    gc.freeze()
    # steps collect garbage at their ends: references in cycles of exceptions are counted before
    gc.disable()
    clients = {id(plugrt.get_backend(platform)) for platform in platforms}
    assert len(clients) == len(platforms), "one backend has two of the names"
    found = {platform: run(platform, seed, int(count)) for platform in platforms}
    core = "plugrt._core" in sys.modules
    print(json.dumps({"runs in": "c" if core else "python", "steps": found}))


if __name__ == "__main__":
    main()
