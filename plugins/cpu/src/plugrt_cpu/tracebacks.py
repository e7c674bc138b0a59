"""Turns jaxlib's recording of tracebacks off while the garbage collector runs."""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

from plugrt_cpu.interrupts import CompileThread


def pause_while_collecting(jaxlib: Any) -> None:
    """Stops jaxlib from recording Python frames while the garbage collector runs.

    jaxlib 0.10 records them with each array that it makes. If the collector is closing a generator
    whose ``finally`` launches a program, that corrupts the interpreter's memory: 200 such
    generators end JAX by SIGSEGV. Recording stays on where other threads run (a thread that
    compiles makes no arrays, and does not count), and where JAX is imported.
    """
    paused = False

    def pause(phase: str, _: object) -> None:
        nonlocal paused
        if phase == "start":
            paused = "jax" not in sys.modules and _is_alone() and jaxlib.tracebacks_enabled()
            if paused:
                jaxlib.set_tracebacks_enabled(False)
        elif paused:
            jaxlib.set_tracebacks_enabled(True)

    gc.callbacks.append(pause)


def _is_alone() -> bool:
    return sum(not isinstance(t, CompileThread) for t in threading.enumerate()) <= 1
