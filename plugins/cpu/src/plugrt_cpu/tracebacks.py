"""jaxlib's own tracebacks: off while the garbage collector runs."""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any


def pause_while_collecting(jaxlib: Any) -> None:
    """Keeps jaxlib from noting Python's frames while the garbage collector runs.

    jaxlib (0.10) notes them with each array that it makes. If the collector is just ending a
    generator whose ``finally`` launches a program, that destroys the interpreter's memory: 200 such
    generators end JAX by SIGSEGV. They are left on where other threads may need them meanwhile, and
    where JAX does.
    """
    paused = False

    def pause(phase: str, _: object) -> None:
        nonlocal paused
        if phase == "start":
            alone = "jax" not in sys.modules and threading.active_count() == 1
            paused = alone and jaxlib.tracebacks_enabled()
            if paused:
                jaxlib.set_tracebacks_enabled(False)
        elif paused:
            jaxlib.set_tracebacks_enabled(True)

    gc.callbacks.append(pause)
