"""The generator itself: Random123's known answers, and fixed numbers that may never change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plugrt import random
from plugrt.random.threefry import key_words, make_counters, threefry2x32
from plugrt.tracing.emit import reshape
from plugrt.tracing.operation import operation

# From Random123's kat_vectors: counter, key, result of threefry2x32 with 20 rounds.
KNOWN = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


@operation
def hashed(key: Any, x: Any, y: Any) -> Any:
    return threefry2x32(key_words(key), reshape(x, (1,)), reshape(y, (1,)))


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_the_hash_gives_random123s_known_answers(
    counter: tuple[int, int], key: tuple[int, int], expected: tuple[int, int]
) -> None:
    found = hashed(np.array(key, np.uint32), *np.array(counter, np.uint32))
    assert tuple(int(np.asarray(w)[0]) for w in found) == expected


def test_numbers_stay_what_they_are() -> None:
    key = random.PRNGKey(42)
    assert np.asarray(key).tolist() == [0, 42]
    assert np.asarray(random.split(key)).tolist() == [
        [1832780943, 270669613],
        [64467757, 2916123636],
    ]
    assert np.asarray(random.bits(key, (2,))).tolist() == [2098992034, 2919706841]
    assert np.asarray(random.randint(key, (4,), 0, 100)).tolist() == [44, 14, 71, 69]
    uniform = np.array([0.48870956897735596, 0.6797971725463867, 0.6162714958190918], np.float32)
    np.testing.assert_array_equal(random.uniform(key, (3,)), uniform)


@operation(static=("shape",))
def counted(shape: tuple[int, ...]) -> Any:
    return make_counters(shape)


def test_counters_number_the_elements_row_by_row() -> None:
    high, low = counted((2, 3))
    assert not np.asarray(high).any()
    assert np.asarray(low).tolist() == [[0, 1, 2], [3, 4, 5]]
