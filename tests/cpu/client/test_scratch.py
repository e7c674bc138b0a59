"""NumPy arguments of launches are copied to reused memory, and keep their own values."""

from __future__ import annotations

import copy
import threading
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import plugrt
from plugrt.errors import DeletedBuffer


def _diagonal(corner: float) -> npt.NDArray[np.float32]:
    matrix = np.zeros((100, 100), np.float32)
    np.fill_diagonal(matrix, 2.0)
    matrix[0, 1] = corner
    return matrix


def test_threads_that_launch_one_program_do_not_share_memory() -> None:
    double = plugrt.jit(lambda a, b: a + b)
    wrong: list[Any] = []

    def call(number: int) -> None:
        host = np.full(64, number, np.float32)
        for i in range(300):
            result = np.asarray(double(host, host * i))
            if not (result == number * (i + 1)).all():
                wrong.append((number, i, result))

    threads = [threading.Thread(target=call, args=(n,)) for n in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("several", [False, True])
def test_arrays_on_another_device_arrive(several: bool) -> None:
    f = plugrt.jit(lambda a, _, b: (a - b, a * b) if several else a - b)
    here, there = plugrt.devices()[0], plugrt.devices()[-1]
    host = np.arange(4, dtype=np.float32)
    at = plugrt.device_put(host, there)
    results = []
    for i in range(10):
        near = plugrt.device_put(host + i)
        for other in (near, copy.copy(near), near[:], host + i):
            for unused in (near, at, 1.0):
                found = plugrt.tree.leaves(f(at, unused, other))
                assert {r.device for r in found} == {there}
                results.append((i, found))
        near.delete()
        with pytest.raises(DeletedBuffer):
            f(at, at, near)
    for i, found in results:
        np.testing.assert_array_equal(np.asarray(found[0]), np.full(4, -i, np.float32))
        if several:
            np.testing.assert_array_equal(np.asarray(found[1]), host * (host + i))
    assert near.is_deleted()
    assert not at.is_deleted()
    assert here is not there


def test_arrays_on_another_device_that_are_not_there_yet_arrive() -> None:
    def slow(x: Any, n: Any) -> Any:
        return plugrt.lax.fori_loop(0, n, lambda i, y: y @ y / 2.0, x)

    make, add = plugrt.jit(slow), plugrt.jit(lambda a, b: a + b)
    at = plugrt.device_put(np.zeros((100, 100), np.float32), plugrt.devices()[-1])
    results = [add(at, make(_diagonal(i), np.int32(200))) for i in range(12)]
    for i, result in enumerate(results):
        wanted = np.asarray(make(plugrt.device_put(_diagonal(i)), np.int32(200)))
        np.testing.assert_array_equal(np.asarray(result), wanted)
