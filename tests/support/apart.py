"""`runs_apart`: the mark of tests that take long, which a target of their own runs in CI."""

from __future__ import annotations

import os

import pytest


def runs_apart(target: str) -> pytest.MarkDecorator:
    """Returns a mark that skips tests unless ``make TARGET`` runs them, and says so.

    `tests/nothing/test_targets.py` sees that the target runs their file, and CI the target.
    """
    return pytest.mark.skipif(
        os.environ.get("PLUGRT_TEST_TARGET") != target,
        reason=f"takes long: make {target} runs it, as CI does",
    )
