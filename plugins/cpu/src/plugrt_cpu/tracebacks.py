"""jaxlib's own tracebacks, which are for JAX: off until JAX is imported."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from typing import Any


class _Listener(MetaPathFinder):
    """Turns tracebacks on when jax is imported, by whatever import statement; finds nothing."""

    def __init__(self, jaxlib: Any) -> None:
        self._jaxlib = jaxlib

    def find_spec(self, name: str, *_: object) -> None:
        if name == "jax":
            self._jaxlib.set_tracebacks_enabled(True)
            if self in sys.meta_path:  # another thread may have been faster
                sys.meta_path.remove(self)


def turn_off_without_jax(jaxlib: Any) -> None:
    """Keeps ``jaxlib._jax`` from noting Python's frames with each array that it makes.

    Nothing here reads them, a launch takes a tenth longer with them, and when the garbage collector
    is running (the ``finally`` of a generator in a cycle launches a program) making them destroys
    the interpreter's memory: 200 such generators end JAX (0.10) by SIGSEGV. JAX needs them for its
    messages and the lines in its programs.
    """
    if "jax" not in sys.modules and jaxlib.tracebacks_enabled():
        jaxlib.set_tracebacks_enabled(False)
        sys.meta_path.insert(0, _Listener(jaxlib))


@contextlib.contextmanager
def turned_on(jaxlib: Any) -> Iterator[None]:
    """Has ``jaxlib._jax`` note frames within the block, whether JAX is there or not.

    For launches on several devices: an array on these that has no frames noted cannot be taken
    apart (jaxlib 0.10: "Expecting an IFRT `Array` to have a user context"), which reading does.
    """
    if jaxlib.tracebacks_enabled():
        yield
        return
    jaxlib.set_tracebacks_enabled(True)
    try:
        yield
    finally:
        if "jax" not in sys.modules:  # else they were turned on for it meanwhile, to stay
            jaxlib.set_tracebacks_enabled(False)
