"""A pytest plugin (``-p sampled_tests``): runs one in ``SAMPLE`` tests, the same in each run."""

from __future__ import annotations

import os
import re
import zlib

import pytest

_NAMESPACE = re.compile(r"plugrt\.array_api|jax\.numpy")
"""Removed from the names of SciPy's tests, so that each backend runs the same tests."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps the tests that a checksum of the name selects, independently of other tests."""
    share = int(os.environ.get("SAMPLE", "1"))
    left = [item for item in items if zlib.crc32(_NAMESPACE.sub("", item.nodeid).encode()) % share]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in set(left)]
