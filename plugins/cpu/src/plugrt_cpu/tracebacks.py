"""jaxlib's own tracebacks: off until JAX, or a program on several devices, needs them."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import Any


class _Listener(MetaPathFinder):
    """Turns tracebacks on when jax is imported, by whatever import statement; finds nothing."""

    def __init__(self, jaxlib: Any) -> None:
        self._jaxlib = jaxlib

    def find_spec(self, name: str, *_: object) -> None:
        if name == "jax":
            turn_on(self._jaxlib)


def turn_off_without_jax(jaxlib: Any) -> None:
    """Keeps jaxlib from noting Python's frames with each array that it makes.

    Nothing here reads them, a launch takes a tenth longer with them, and when the garbage collector
    is running (the ``finally`` of a generator in a cycle launches a program) making them destroys
    the interpreter's memory: 200 such generators end JAX (0.10) by SIGSEGV. JAX needs them for its
    messages and the lines in its programs.
    """
    if "jax" not in sys.modules and jaxlib.tracebacks_enabled():
        jaxlib.set_tracebacks_enabled(False)
        sys.meta_path.insert(0, _Listener(jaxlib))


def turn_on(jaxlib: Any) -> None:
    """Has jaxlib note them, for good.

    Without, it cannot launch and take apart what lies on several devices (jaxlib 0.10: "Expecting
    an IFRT `Array` to have a user context").
    """
    if not jaxlib.tracebacks_enabled():
        jaxlib.set_tracebacks_enabled(True)
        sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, _Listener)]
