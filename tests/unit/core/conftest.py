"""Marks the unfinished arrays of a module's tests as deleted.

Callbacks of cffi keep some of them alive, and `plugrt.live_arrays` would read their avals.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from plugrt.execution.arrays.array import Array
from plugrt.execution.shardings.sharding_base import Sharding


@pytest.fixture(autouse=True, scope="module")
def unfinished_arrays_are_deleted() -> Iterator[None]:
    yield
    gc.collect()
    for x in gc.get_objects():
        if type(x) is Array and not _has_sharding(x):
            x._shards = x._assignment = None


def _has_sharding(x: Array) -> bool:
    aval = getattr(x, "_aval", None)
    return isinstance(getattr(aval, "sharding", None), Sharding)
