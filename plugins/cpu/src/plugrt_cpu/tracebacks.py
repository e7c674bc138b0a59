"""Keeps jaxlib from recording tracebacks of finalisers that the garbage collector runs."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import partial
from operator import methodcaller

from plugrt.native.finalizers import running as collecting
from plugrt_cpu.interrupts import is_alone
from plugrt_cpu.jaxlib_import import import_jaxlib

__all__ = ["AtEnd", "collecting", "stop_recording"]


class AtEnd:
    """Calls a function at the end of each garbage collection.

    It must be written in C, like all code that runs there: see `plugrt.native.finalizers`.
    """

    call: Callable[[], object] = int  # does nothing
    stop = property(methodcaller("call"))

    def __init__(self) -> None:
        gc.callbacks.append(partial(getattr, self))


_jaxlib, _ = import_jaxlib()
_resume, _forget = AtEnd(), AtEnd()
_forget.call = partial(setattr, _resume, "call", int)


def stop_recording() -> None:
    """Stops jaxlib from recording Python frames until the current collection has ended.

    Call it if `collecting`, before a call into jaxlib that makes or reads arrays. jaxlib 0.10
    records frames in each. If the garbage collector is closing a generator whose ``finally``
    launches a program, that corrupts the interpreter's memory: 200 such generators end JAX by
    SIGSEGV. Recording stays on if other threads run or compile, because jaxlib reads the state
    several times in a call ("Expecting an IFRT `Array` to have a user context"), and if JAX is
    imported.
    """
    # Workaround for jaxlib-traceback-of-generator
    if "jax" not in sys.modules and is_alone() and _jaxlib.tracebacks_enabled():
        _resume.call = partial(_jaxlib.set_tracebacks_enabled, True)
        _jaxlib.set_tracebacks_enabled(False)
