"""The Python functions that libraries call: the expected calls, and their threads.

Clients must not be destroyed on a thread that is inside a callback.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from plugrt.capi.abi._abi import ffi
from plugrt.lifetime.forks import keep_forever
from plugrt.native.finalizers import here

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

# Process-wide: numbers `expected`.
_keys = itertools.count(1)
# Process-wide: libraries call these functions at any time until the process ends.
expected: dict[int, Any] = {}
"""Python functions that libraries may still call, with the objects that they need; see `expect`."""


def expect(call: object) -> int:
    """Keeps a Python function that a library will call; returns its key in `expected`."""
    key = next(_keys)
    expected[key] = call
    return key


def c_callback(c_type: str) -> Callable[[Callable[..., object]], CData]:
    """Decorator: makes a Python function a C function of a type, until the process ends."""
    return lambda function: keep_forever(ffi.callback(c_type, function))


def mark_callback(function: Callable[..., object]) -> Callable[..., object]:
    """Wraps a function that a library calls, so that `here.depth` counts it."""

    @functools.wraps(function)
    def run(*args: CData) -> object:
        before = here.depth
        here.depth = before + 1
        try:
            return function(*args)
        finally:
            here.depth = before

    return run
