"""`uncollected`: the garbage collector waits."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Collects nothing meanwhile.

    Where a test goes to the limit of recursion, finalisers of earlier tests' garbage would meet it,
    and pytest would blame the test for their errors.
    """
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
