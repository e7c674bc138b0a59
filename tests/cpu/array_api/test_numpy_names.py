"""Functions that NumPy and JAX have and the standard lacks, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import errors
from support.behaviour import behaviour
from support.numpy_oracle import same

A = np.asarray([[1.0, np.inf, 3.0], [4.0, np.nan, 7.0]], np.float32)
V = np.asarray([3, 1, 2, 5], np.int32)

CALLS: dict[str, Callable[[Any], Any]] = {
    "array": lambda m: m.array([[1, 2], [3, 4]], dtype=np.float32),
    "concatenate": lambda m: m.concatenate([A, A], axis=1),
    "concatenate flat": lambda m: m.concatenate([A, V.astype("f")], axis=None),
    "vstack of vectors": lambda m: m.vstack([V, V]),
    "vstack": lambda m: m.vstack([A, A]),
    "hstack of vectors": lambda m: m.hstack([V, V]),
    "hstack": lambda m: m.hstack([A, A]),
    "dstack": lambda m: m.dstack([V, V]),
    "column_stack": lambda m: m.column_stack([V, V]),
    "split": lambda m: m.concatenate(m.split(V, 2)[::-1]),
    "split at indices": lambda m: m.split(A, [1], axis=1)[1],
    "transpose": lambda m: m.transpose(A),
    "transpose to": lambda m: m.transpose(A[None], (1, 0, 2)),
    "dot of vectors": lambda m: m.dot(V, V),
    "dot by a scalar": lambda m: m.dot(V, np.int32(2)),
    "dot of matrices": lambda m: m.dot(A[:, ::2], A[:, ::2].T),
    "dot of stacks": lambda m: m.dot(np.ones((2, 3, 4), "f"), np.ones((5, 4, 2), "f")),
    "outer": lambda m: m.outer(A[:, ::2], V.astype("f")),
    "diag": lambda m: m.diag(V),
    "diag above": lambda m: m.diag(V, 2),
    "diag below": lambda m: m.diag(V, k=-1),
    "diag of a matrix": lambda m: m.diag(A, k=1),
    "isclose": lambda m: m.isclose(A, A + np.float32(1e-6)),
    "isclose by arrays": lambda m: m.isclose(V, 3, m.asarray([0.1]), atol=m.asarray(0.5)),
    "isclose by one array": lambda m: m.isclose(A, A + np.float32(0.1), atol=np.float32(0.2)),
    "isclose of NaN": lambda m: m.isclose(A, A, equal_nan=True),
    "isclose of integers": lambda m: m.isclose(V, np.int32(3), rtol=0.5),
    "median": lambda m: m.median(A[:, ::2]),
    "median over an axis": lambda m: m.median(A, axis=0, keepdims=True),
    "median of an odd number": lambda m: m.median(V[:3].astype("f")),
    "pad": lambda m: m.pad(A, ((1, 0), (0, 2)), constant_values=5),
    "pad all": lambda m: m.pad(V, 2),
    **{
        f"pad by {mode}": lambda m, mode=mode: m.pad(A, ((1, 0), (2, 5)), mode=mode)
        for mode in ("edge", "reflect", "symmetric", "wrap")
    },
    "reshape by columns": lambda m: m.reshape(A, (-1, 2), order="F"),
    "arange by keywords": lambda m: m.arange(start=np.int32(2), stop=np.int32(7), step=np.int32(2)),
}


@behaviour(19, "NumPy's names that the standard lacks: `concatenate`, `dot`, `split`, `pad`, …")
def test_as_numpy() -> None:
    for name, call in CALLS.items():
        found, expected = call(xp), np.asarray(call(np))
        assert isinstance(found, plugrt.Array), name
        same(found, expected, dtype=found.dtype, tolerance=1e-6)
        assert found.dtype.kind == expected.dtype.kind, name


def test_allclose_is_an_array_of_bool() -> None:
    assert bool(xp.allclose(V, V))
    assert not bool(plugrt.jit(xp.allclose)(A, A))
    assert bool(xp.allclose(A, A, equal_nan=True))


def test_array_is_a_copy_unless_that_is_not_wanted() -> None:
    x = xp.asarray(V)
    assert xp.array(x, copy=False) is x
    assert xp.array(x) is not x


def test_wrong_calls_are_named() -> None:
    with pytest.raises(errors.ShapeError, match="into 3 equal parts: 4 is not a multiple"):
        xp.split(V, 3)
    with pytest.raises(errors.ShapeError, match="a vector or a matrix"):
        xp.diag(np.ones((1, 1, 1)))
    with pytest.raises(errors.ArgumentError, match="mode of pad is 'mean'"):
        xp.pad(V, 1, mode="mean")
    for value in (3, xp.asarray(0)):
        with pytest.raises(errors.ArgumentError, match="constant_values and mode 'edge'"):
            xp.pad(V, 1, "edge", value)
    with pytest.raises(errors.ArgumentError, match="needs elements along axis 1"):
        xp.pad(A[:, :0], 1, mode="edge")
    with pytest.raises(errors.ArgumentError, match="order of reshape is 'K'"):
        xp.reshape(V, (2, 2), order="K")
    with pytest.raises(errors.ArgumentError, match="a pair for each axis"):
        xp.pad(V, ((1, 1), (1, 1)))
    with pytest.raises(errors.ArgumentError, match="it takes 0 or more"):
        xp.pad(V, -1)
    with pytest.raises(errors.ShapeError, match="has no elements"):
        xp.median(np.zeros((0,), "f"))
    with pytest.raises(errors.AxisError, match="axis of split is 1"):
        xp.split(V, 2, axis=1)
