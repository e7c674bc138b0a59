"""What a test may do without on somebody's machine, and what must be there in CI."""

from __future__ import annotations

import importlib.util
import os

import pytest

IN_CI = bool(os.environ.get("CI"))


def needs(found: object, what: str) -> pytest.MarkDecorator:
    """Marks tests that are skipped without ``what``; in CI they run, and fail without it."""
    return pytest.mark.skipif(not found and not IN_CI, reason=f"needs {what}")


needs_jax = needs(importlib.util.find_spec("jax"), "jax")


def cannot(reason: str) -> None:
    """Skips the running test and says why; in CI fails it."""
    if IN_CI:
        pytest.fail(f"not to be skipped in CI: {reason}", pytrace=False)
    pytest.skip(reason)
