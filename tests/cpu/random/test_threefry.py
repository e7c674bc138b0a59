"""The generator itself: fixed numbers that must never change."""

from __future__ import annotations

import numpy as np

from plugrt import random


def test_random_numbers_of_a_key_never_change() -> None:
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
