"""Whether the compiled cores are installed, and how they were built."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from plugrt.native import native_core
from support.requirements import needs

SOURCES = Path(__file__).parents[2] / "runtime/core"

needs_core = (
    needs(importlib.util.find_spec("plugrt._core"), "the compiled core (a C compiler)")
    if SOURCES.exists()
    else pytest.mark.skip(reason="no core in C here")
)

IN_C = native_core.core is not None
"""Whether warm calls run in the compiled core, in this process."""

runs_in_c = pytest.mark.skipif(not IN_C, reason=f"no compiled core here: {native_core.reason}")
"""Marks tests that need the compiled core in this process."""

SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")
"""Whether freed memory is not reused yet: the sanitizer watches it for a while."""


def unsanitized(reason: str) -> pytest.MarkDecorator:
    """Marks tests that cannot run under the sanitizers; the summary has the ``reason``."""
    return pytest.mark.skipif(SANITIZED, reason=f"not under the sanitizers: {reason}")


preloads_tracer = unsanitized(
    "the tracer that is preloaded has a dlsym, which they call before either is ready"
)
"""Marks tests of programs that `plugrt trace` runs."""


@contextmanager
def python_calls() -> Iterator[list[str]]:
    """Lists the functions of plugrt's packages that this thread calls in Python meanwhile."""
    seen: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and str(frame.f_globals.get("__name__")).startswith("plugrt"):
            seen.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        yield seen
    finally:
        sys.setprofile(None)


def warm_calls(call: Callable[[], object]) -> list[str]:
    """Returns the list of `python_calls` for a call that was made three times before."""
    for _ in range(3):
        call()
    with python_calls() as seen:
        call()
    return seen


def with_plain_crashes(sanitized: bool = SANITIZED) -> dict[str, str]:
    """Returns the environment in which a child dies of the signals that it gets.

    The sanitizer catches them, and ends the process by SIGABRT with a report.
    """
    if not sanitized:
        return {}
    given = os.environ.get("ASAN_OPTIONS", "")
    caught = ("segv", "sigbus", "sigfpe", "sigill", "abort")
    return {"ASAN_OPTIONS": ":".join([given, *(f"handle_{name}=0" for name in caught)])}
