"""What Python functions libraries call: which are expected, and on which threads they run.

Clients must not be destroyed on a thread that is inside a callback.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable
from typing import Any, TypeVar

from plugrt.capi.abi._abi import ffi
from plugrt.native.finalizers import here

Kept = TypeVar("Kept")

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


def mark_callback(function: Callable[..., object]) -> Callable[..., Any]:
    """Wraps a function that a library calls, so that `here.depth` counts it."""

    @functools.wraps(function)
    def run(*args: object) -> Any:
        before = here.depth
        here.depth = before + 1
        try:
            return function(*args)
        finally:
            here.depth = before

    return run
