"""Imports by another thread, after an interrupt of an import in the main thread."""

from __future__ import annotations

from support.distributions import run_python

KEEP_THE_LOCK = """
import _imp, sys
from plugrt.lifetime.uninterrupted_imports import import_native

assert "sqlite3" not in sys.modules
for _ in range(2):  # as an interrupt after the first line of `_get_module_lock` does
    _imp.acquire_lock()
[module] = import_native("sqlite3")
print(module.__name__, _imp.lock_held())
"""


def test_an_import_lock_that_an_interrupt_kept_is_released() -> None:
    """The other thread waited for it for ever, and the main thread for that."""
    done = run_python(KEEP_THE_LOCK, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "sqlite3 False\n", "")
