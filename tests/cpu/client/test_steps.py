"""Launches and reads by the compiled core with jaxlib's functions, and the references they keep."""

from __future__ import annotations

import sys

import numpy as np

import plugrt
from plugrt_cpu import adapter

HOST = np.arange(4, dtype=np.float32)
add = plugrt.jit(lambda a, b: a + b)


def test_launches_leave_no_references_to_the_functions_that_call_them() -> None:
    """jaxlib keeps some for each launch until plugrt asks it to release them."""
    x = plugrt.device_put(HOST)
    compiled = add.lower(x, x).compile()

    def call() -> None:
        add(x, x)
        compiled(x, x)

    for _ in range(2):  # releases references of earlier launches
        adapter.collect_garbage()
        call()
    before = sys.getrefcount(call.__code__)
    for _ in range(3000):
        call()
    assert sys.getrefcount(call.__code__) - before < 2100
