"""What Python functions libraries call: which are expected, and on which threads they run.

Clients must not be destroyed on a thread that is inside a callback.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from plugrt.capi.abi._abi import ffi
from plugrt.lifetime.thread_work import ThreadWork

Kept = TypeVar("Kept")

# Process-wide: each thread's own calls from libraries.
_state = threading.local()
# Process-wide: numbers `expected`.
_keys = itertools.count(1)
# Process-wide: libraries call these functions at any time until the process ends.
expected: dict[int, Any] = {}
"""Python functions that libraries may yet call, with what they need; see `expect`."""


def expect(call: object) -> int:
    """Keeps a Python function that a library will call; returns its key in `expected`."""
    key = next(_keys)
    expected[key] = call
    return key


def keep_forever(kept: Kept) -> Kept:
    """Keeps a C callback, or memory of the host, alive until the process ends, and returns it.

    At exit the interpreter clears this package's modules; another library may release a capsule
    after that.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    return kept


def c_callback(c_type: str) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: makes a Python function a C function of a type, until the process ends."""
    return lambda function: keep_forever(ffi.callback(c_type, function))


def mark_callback(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function that a library calls, so that `callback_depth` counts it."""

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
    """Calls ``function`` now, or on another thread if this one is inside a library's callback.

    The last reference to a client may be dropped in a callback, and a client that is destroyed on
    one of its own threads deadlocks. Where no thread can start, nothing is called.
    """
    if not callback_depth():
        function()
        return
    work = ThreadWork(function)
    if work.start():
        _outside[:] = [w for w in _outside if not w.wait(0)] + [work]


def await_outside() -> None:
    """Waits for the threads of `run_outside_callbacks`."""
    for work in list(_outside):
        work.wait()


# Process-wide: threads that wait outside of callbacks serve every client; a fork ends them.
_outside: list[ThreadWork[None]] = []
os.register_at_fork(after_in_child=_outside.clear)
