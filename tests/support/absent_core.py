"""`skip_without_core`: skips tests that import plugrt-sdk's core in C if it is not installed.

This is the case without a C compiler. pytest's summary counts the skips and has the reason. A file
that imports it at its top is one skip. In CI the import fails, as for users.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from support.requirements import IN_CI, needs

NAME = "plugrt_sdk.export._core"
IS_THERE = importlib.util.find_spec(NAME) is not None
WHAT = "plugrt-sdk's core in C (a C compiler)"

needs_sdk_core = needs(IS_THERE, WHAT)
"""Marks tests whose children import it; tests that import it themselves need no mark."""


class SkippingFinder:
    """A finder of ``sys.meta_path`` that skips the test, or the test file, that imports NAME."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == NAME:
            pytest.skip(f"needs {WHAT}", allow_module_level=True)
        return None


def skip_without_core() -> None:
    """Makes importing tests skip if the core is not installed."""
    if not IS_THERE and not IN_CI:
        sys.meta_path.insert(0, SkippingFinder)
