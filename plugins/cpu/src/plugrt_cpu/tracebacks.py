"""Turns jaxlib's recording of tracebacks off while the garbage collector runs."""

from __future__ import annotations

import gc
import sys
from typing import Any

from plugrt_cpu.interrupts import is_alone


def pause_while_collecting(jaxlib: Any) -> None:
    """Stops jaxlib from recording Python frames while the garbage collector runs.

    jaxlib 0.10 records them with each array that it makes. If the collector is closing a generator
    whose ``finally`` launches a program, that corrupts the interpreter's memory: 200 such
    generators end JAX by SIGSEGV. Recording stays on where other threads run or compile (XLA needs
    it for what it compiles), and where JAX is imported.
    """
    paused = False

    def pause(phase: str, _: object) -> None:
        nonlocal paused
        if phase == "start":
            paused = "jax" not in sys.modules and is_alone() and jaxlib.tracebacks_enabled()
            if paused:
                jaxlib.set_tracebacks_enabled(False)
        elif paused:
            jaxlib.set_tracebacks_enabled(True)

    gc.callbacks.append(pause)
