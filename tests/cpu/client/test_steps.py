"""Launches and reads that the compiled core makes by jaxlib's functions, and what these leave."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt.errors import DeletedBuffer
from plugrt.lifetime import forks
from plugrt_cpu import adapter
from plugrt_cpu.shards import CpuShards
from support.native_core import runs_in_c

HOST = np.arange(4, dtype=np.float32)
add = plugrt.jit(lambda a, b: a + b)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was read in Python."""
    found: list[Any] = []
    read = CpuShards.to_host

    def to_host(self: CpuShards) -> Any:
        found.append(self.type)
        return read(self)

    monkeypatch.setattr(CpuShards, "to_host", to_host)
    return found


@runs_in_c
def test_a_warm_read_runs_no_python(reads: list[Any]) -> None:
    x = plugrt.device_put(HOST)
    np.asarray(add(x, x)), float(xp.sum(x))  # the first of each type is Python's
    reads.clear()
    y = add(x, x)
    assert np.asarray(y).tolist() == [0, 2, 4, 6]
    assert y.__array__() is y.__array__()
    assert not np.asarray(y).flags.writeable
    assert float(xp.sum(add(x, x))) == 12
    assert reads == []


@runs_in_c
def test_what_the_core_cannot_read_python_does(
    reads: list[Any],
) -> None:
    x = plugrt.device_put(HOST)
    np.asarray(add(x, x))
    reads.clear()
    y = add(x, x)
    adapter.delete(y._shards)
    with pytest.raises(DeletedBuffer):
        y.__array__()  # np.asarray asks for a buffer before, from Python 3.12 on
    assert len(reads) == 1  # which explained it
    forks.in_child.append(True)  # the lock that the core knows is the parent's
    try:
        assert np.asarray(add(x, x)).tolist() == [0, 2, 4, 6]
    finally:
        forks.in_child.clear()
    assert len(reads) == 2


def test_launches_leave_no_references_to_the_functions_that_call_them() -> None:
    """jaxlib keeps some for each launch until it is told to give them back."""
    x = plugrt.device_put(HOST)
    compiled = add.lower(x, x).compile()

    def call() -> None:
        add(x, x)
        compiled(x, x)

    for _ in range(2):  # what is kept of before is given back
        adapter.collect_garbage()
        call()
    before = sys.getrefcount(call.__code__)
    for _ in range(3000):
        call()
    assert sys.getrefcount(call.__code__) - before < 2100
