"""The device under plugrt: it is the one that is used, and computes what NumPy computes."""

from __future__ import annotations

import numpy as np
import plugrt
from plugrt import array_api as xp

from my_chip import NAME

X = np.float32([[1, 2, 3], [4, 5, 6]])


def test_it_is_the_device() -> None:
    assert list(plugrt.backends()) == [NAME]
    assert plugrt.devices() == plugrt.devices(NAME)


def test_a_program_computes_what_numpy_computes() -> None:
    normalise = plugrt.jit(lambda x: (x - xp.mean(x)) / xp.std(x))
    np.testing.assert_allclose(np.asarray(normalise(X)), (X - X.mean()) / X.std(), rtol=1e-5)


def test_a_matrix_product() -> None:
    product = plugrt.jit(lambda x: x @ x.T)
    np.testing.assert_allclose(np.asarray(product(X)), X @ X.T, rtol=1e-5)
