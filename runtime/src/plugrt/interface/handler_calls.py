"""`calling_launch`: which launch calls the function that runs on this thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

# Process-wide: each thread's own call.
_here = threading.local()


def calling_launch() -> int | None:
    """Returns a number of the launch that calls the handler which runs on this thread.

    All calls of a launch have the same, on each of its devices; launches of a client that may
    overlap have others. None outside of handlers, and where the backend does not say.
    """
    call: tuple[Callable[[], int | None], Any] | None = getattr(_here, "call", None)
    if call is None:
        return None
    question, _here.call = call  # an exported backend gets the question again
    try:
        return question()
    finally:
        _here.call = call


def call_in_launch(
    question: Callable[[], int | None], function: Callable[..., T], *arguments: Any
) -> T:
    """Calls a function; `calling_launch` asks ``question`` meanwhile. For backends."""
    before = getattr(_here, "call", None)
    _here.call = question, before
    try:
        return function(*arguments)
    finally:
        _here.call = before
