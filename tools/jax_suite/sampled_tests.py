"""A pytest plugin (``-p sampled_tests``): runs one in ``SAMPLE`` tests, always the same."""

from __future__ import annotations

import os
import re
import zlib

import pytest

_NAMESPACE = re.compile(r"plugrt\.array_api|jax\.numpy")
"""SciPy's tests have it in their names: the same tests run with each."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps the tests whose names a checksum chooses, whatever others there are."""
    share = int(os.environ.get("SAMPLE", "1"))
    left = [item for item in items if zlib.crc32(_NAMESPACE.sub("", item.nodeid).encode()) % share]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in set(left)]
