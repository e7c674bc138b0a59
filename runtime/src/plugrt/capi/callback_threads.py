"""Marks the threads on which a library runs our code, because some things must not happen there."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

Callback = TypeVar("Callback")

_state = threading.local()


def keep_forever(callback: Callback) -> Callback:
    """Keeps a C function that others call for as long as the process lives, and returns it.

    The interpreter empties this package's modules at its end; a capsule that another library
    holds is given back after that.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(callback))
    return callback


def mark_callback(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps what a library calls, so that `callback_depth` is true while it runs."""

    @functools.wraps(function)
    def run(*args: Any) -> Any:
        before = callback_depth()
        _state.depth = before + 1
        try:
            return function(*args)
        finally:
            _state.depth = before

    return run


def callback_depth() -> int:
    """How many calls from a library are under way on this thread."""
    depth: int = getattr(_state, "depth", 0)
    return depth


def run_outside_callbacks(function: Callable[[], None]) -> None:
    """Calls ``function`` now, or on another thread when this one belongs to a library.

    The last reference to a client may go within a callback, and a library that is destroyed by
    one of its own threads waits for itself.
    """
    if callback_depth():
        threading.Thread(target=function, name="plugrt-outside").start()
    else:
        function()
