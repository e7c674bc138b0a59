"""Counts lines and basic blocks in the processes that a test starts or forks.

A ``.pth`` file in the copy's environment calls `begin` where `VARIABLE` is set. It names a JSON
file with ``folder``, ``include`` and ``extensions``; PYTEST_CURRENT_TEST names the test. A
process that a signal or C code ends leaves no record.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import sys
import uuid
from pathlib import Path
from typing import Any, NoReturn

VARIABLE = "PLUGRT_MUTANTS_CHILDREN"
leave = os._exit


def reached_blocks(extensions: list[str]) -> dict[str, list[int]]:
    """Returns the blocks of each extension that ran since the last call, from ``blocks.c``."""
    found = {}
    for name in extensions:
        if name in sys.modules:
            library = ctypes.CDLL(str(sys.modules[name].__file__))
            offsets = (ctypes.c_uint32 * library.plugrt_blocks(None, 0))()
            count = library.plugrt_blocks(offsets, len(offsets))
            found[name] = list(offsets[:count])
    return found


def begin() -> None:
    """Counts the lines of an interpreter that a test started, and of its forks."""
    if not current_test():
        return
    from coverage import Coverage

    settings = json.loads(Path(os.environ[VARIABLE]).read_text(encoding="utf-8"))
    coverage = Coverage(
        data_file=None, config_file=False, include=settings["include"], messages=False
    )
    coverage.start()
    coverage.switch_context(current_test())
    write_at_exit(coverage, None)


def current_test() -> str:
    """Returns the name of the test that this process belongs to, or an empty string."""
    return os.environ.get("PYTEST_CURRENT_TEST", "").rsplit(" (", 1)[0]


def write_at_exit(coverage: Any, but_for: int | None) -> None:
    """Makes this process and its forks write their records as they end.

    The process ``but_for`` does not: it is pytest, which keeps its lines in memory.
    """

    def finish() -> None:
        if os.getpid() == but_for or not current_test() or not os.environ.get(VARIABLE):
            return
        coverage.stop()
        data = coverage.get_data()
        data.set_query_context(current_test())
        settings = json.loads(Path(os.environ[VARIABLE]).read_text(encoding="utf-8"))
        record = {
            "test": current_test(),
            "lines": {path: lines for path in data.measured_files() if (lines := data.lines(path))},
            "blocks": reached_blocks(settings["extensions"]),
        }
        name = Path(settings["folder"]) / f"{uuid.uuid4().hex}.json"
        name.write_text(json.dumps(record), encoding="utf-8")

    def end(status: int) -> NoReturn:
        try:
            finish()
        finally:
            leave(status)

    atexit.register(finish)
    os._exit = end
