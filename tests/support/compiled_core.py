"""The compiled core of the runtime, `plugrt._core`, as far as tests need to know of it."""

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
