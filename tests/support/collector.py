"""`uncollected`: pauses the garbage collector."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Pauses the garbage collector within the block.

    In a test at the limit of recursion, finalisers of earlier tests' garbage would reach it, and
    pytest would blame the test for their errors.
    """
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
