"""The compiled cores, as far as tests need to know of them: whether, and how they were built."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from support.requirements import needs

SOURCES = Path(__file__).parents[2] / "runtime/core"

needs_core = (
    needs(importlib.util.find_spec("plugrt._core"), "the compiled core (a C compiler)")
    if SOURCES.exists()
    else pytest.mark.skip(reason="no core in C here")
)

SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")
"""Whether the memory that is freed is not given back yet: the sanitizer watches it for a while."""


def unsanitized(reason: str) -> pytest.MarkDecorator:
    """Marks tests that cannot run under the sanitizers, which say ``reason`` in the summary."""
    return pytest.mark.skipif(SANITIZED, reason=f"not under the sanitizers: {reason}")


preloads_tracer = unsanitized(
    "the tracer that is preloaded has a dlsym, which they call before either is ready"
)
"""Marks tests of programs that `plugrt trace` runs."""


def with_plain_crashes() -> dict[str, str]:
    """Returns what a child needs in its environment to die of the very signals that it is sent.

    The sanitizer catches them, and ends the process by SIGABRT with a report.
    """
    if not SANITIZED:
        return {}
    given = os.environ.get("ASAN_OPTIONS", "")
    caught = ("segv", "sigbus", "sigfpe", "sigill", "abort")
    return {"ASAN_OPTIONS": ":".join([given, *(f"handle_{name}=0" for name in caught)])}
