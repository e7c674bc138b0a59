"""NumPy's own functions on arrays run on the device, and those without a counterpart say so.

Differs from JAX: `np.sin(x)` and NumPy's other functions | a NumPy array, computed on the host |
an array of plugrt, computed on its device, also in a trace; a function without a counterpart is an
error that says what to write.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt.errors import ArgumentTypeError, TracingError, Unimplemented
from support.behaviour import behaviour

A = np.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]], np.float32)

CALLS: dict[str, Callable[[Any], Any]] = {
    "a ufunc": np.sin,
    "a ufunc that the standard calls otherwise": np.arctan,
    "two operands": lambda x: np.arctan2(x, A),
    "a list": lambda x: np.add(x, [1, 2, 3]),
    "reduce": np.add.reduce,
    "reduce over all": lambda x: np.maximum.reduce(x, axis=None),
    "accumulate": np.multiply.accumulate,
    "outer": lambda x: np.multiply.outer(x[0], x),
    "NumPy's array on the left": lambda x: A + x,
    "NumPy's scalar on the left": lambda x: np.float32(2) * x,
    "divmod": lambda x: np.divmod(x, 2)[1],
    "matmul": lambda x: np.matmul(x, x.T),
    "mean over an axis": lambda x: np.mean(x, axis=0, keepdims=True),
    "clip": lambda x: np.clip(x, 2, a_max=3),
    "transpose": lambda x: np.transpose(x, (1, 0)),
    "sort": lambda x: np.sort(-x, axis=0),
    "reshape": lambda x: np.reshape(x, (3, 2)),
    "concatenate": lambda x: np.concatenate([x, A], axis=1),
    "stack": lambda x: np.stack([x, x], 1),
    "vstack": lambda x: np.vstack([x, x[0]]),
    "hstack": lambda x: np.hstack((x, A)),
    "dstack": lambda x: np.dstack([x, x]),
    "column_stack": lambda x: np.column_stack([x, x[:, 0]]),
    "where": lambda x: np.where(x > 2, x, 0),
    "dot": lambda x: np.dot(x, x.T),
    "tensordot": lambda x: np.tensordot(x, x, axes=2),
    "trace": lambda x: np.trace(x, offset=1),
    "diagonal of the first axes": lambda x: np.diagonal(np.stack([x, x], axis=-1)),
    "roll": lambda x: np.roll(x, 1, axis=0),
    "take": lambda x: np.take(x, [0, 2], axis=1),
    "expand_dims": lambda x: np.expand_dims(x, 0),
    "a function of several": lambda x: np.meshgrid(x[0], x[1])[0],
    "pad": lambda x: np.pad(x, 1, constant_values=2),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x),
    "split": lambda x: np.split(x, 3, axis=1)[1],
    "linalg": lambda x: np.linalg.matrix_norm(x),
    "fft": lambda x: np.fft.irfft(x, n=4, norm="ortho"),
}


@behaviour(18, "NumPy's functions and ufuncs run on the device", jax="they give NumPy arrays")
@pytest.mark.parametrize("name", CALLS)
def test_eager(name: str) -> None:
    found = CALLS[name](xp.asarray(A))
    assert isinstance(found, plugrt.Array)
    np.testing.assert_allclose(np.asarray(found), CALLS[name](A), rtol=2e-6, atol=1e-6)


@behaviour(18, "NumPy's functions trace", jax="TracerArrayConversionError")
def test_traced() -> None:
    def run(x: Any) -> list[Any]:
        return [call(x) for call in CALLS.values()]

    for found, call in zip(plugrt.jit(run)(A), CALLS.values(), strict=True):
        np.testing.assert_allclose(np.asarray(found), call(A), rtol=2e-6, atol=1e-6)


def test_what_is_pythons_or_a_file_reads_the_array(tmp_path: Path) -> None:
    x = xp.asarray(A)
    assert np.allclose(x, A)
    assert np.array_equal(x, x)
    assert (np.shape(x), np.ndim(x), np.size(x), np.size(x, 1)) == ((2, 3), 2, 6, 3)
    assert not np.iscomplexobj(x)
    assert np.result_type(x, np.float64) == np.float64
    np.save(tmp_path / "x.npy", x)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), A)
    with pytest.raises(TracingError, match="a NumPy array was asked for"):
        plugrt.jit(lambda x: np.allclose(x, A))(A)


def test_numpys_own_arrays_are_filled() -> None:
    host = A.copy()
    host += xp.asarray(A)
    np.testing.assert_array_equal(host, 2 * A)
    assert type(host) is np.ndarray
    assert np.add(xp.asarray(A), 1, out=host) is host
    np.testing.assert_array_equal(host, A + 1)
    with pytest.raises(Unimplemented, match=r"numpy\.add cannot write into out"):
        np.add(A, 1, out=xp.asarray(A))
    whole = np.zeros((2, 3), np.int32)
    with pytest.raises(TypeError, match="same_kind"):
        np.add(xp.asarray(A), 1, out=whole)


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no counterpart": (np.frexp, r"numpy\.frexp has no counterpart.*numpy\.frexp\(numpy\.asarray"),
    "no such method": (lambda x: np.add.at(x, 0, 1), r"numpy\.add\.at has no counterpart"),
    "what to write": (np.ptp, r"numpy\.ptp has no.*on the device, for example, xp\.max"),
    "in linalg": (np.linalg.cond, r"numpy\.linalg\.cond has no counterpart"),
    "where=": (lambda x: np.add(x, 1, where=x > 1), r"numpy\.add of an array.*parameter where"),
    "of a method": (lambda x: np.sum(x, where=x > 1), r"numpy\.sum of an array.*parameter where"),
    "kind=": (lambda x: np.sort(x, kind="heapsort"), r"numpy\.sort of an array.*parameter kind"),
}


@behaviour(18, "A NumPy function without a counterpart says so", jax="it computes on the host")
@pytest.mark.parametrize("case", WRONG)
def test_what_has_no_meaning_is_refused(case: str) -> None:
    call, words = WRONG[case]
    with pytest.raises(ArgumentTypeError, match=words):
        call(xp.asarray(A))


def test_other_libraries_arrays_get_their_turn() -> None:
    class Theirs:
        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_: Any) -> str:
            return "theirs"

    assert np.add(xp.asarray(A), Theirs()) == "theirs"
