"""NumPy's own functions on arrays run on the device; functions without an equivalent raise errors.

Differs from JAX: `np.sin(x)` and NumPy's other functions | a NumPy array, computed on the host | an
array of plugrt, computed on its device, also in a trace; a function without a counterpart is an
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
from plugrt.errors import ArgumentError, ArgumentTypeError, TracingError
from support.behaviour import behaviour
from support.effort import some_of

A = np.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]], np.float32)

M = np.asarray([[True, False, True], [True, True, True]])

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
    "clip by other names": lambda x: np.clip(x, min=2, max=3),
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
    "sum of some": lambda x: np.sum(x, axis=1, where=M, initial=2.5),
    "prod of some, as float64": lambda x: np.prod(x, where=M, initial=2, dtype=np.float64),
    "max of some": lambda x: np.max(x, axis=0, where=M, initial=4.5, keepdims=True),
    "amin of some": lambda x: np.amin(x, where=M, initial=9),
    "max of none": lambda x: np.max(x[:0], axis=0, initial=1),
    "all of some": lambda x: np.all(x < 3, axis=1, where=M),
    "any of some": lambda x: np.any(x > 6, where=M[0]),
    "mean of some": lambda x: np.mean(x, axis=1, where=M, keepdims=True),
    "mean of some columns": lambda x: np.mean(x, where=M[0]),
    "var of some columns": lambda x: np.var(x, where=M[0]),
    "std of some": lambda x: np.std(x, axis=1, where=M, ddof=1),
    "var of some": lambda x: np.var(x, where=M),
    "mean in another dtype": lambda x: np.mean(x, dtype=np.float64),
    "reduce of some": lambda x: np.add.reduce(x, axis=1, where=M, initial=1, keepdims=True),
    "maximum.reduce from": lambda x: np.maximum.reduce(x, initial=4),
    "a ufunc in another dtype": lambda x: np.add(x, 1, dtype=np.float64),
    "a ufunc in fewer bits": lambda x: np.multiply(x, x, dtype=np.float16, casting="unsafe"),
    "keywords about memory": lambda x: np.add(x, x, order="F", subok=False, casting="safe"),
    "fabs of integers": lambda x: np.fabs(x.astype(np.int16)),
    "rint of integers": lambda x: np.rint(x.astype(np.int16)),
    "rint of bool": lambda x: np.rint(x > 2),
    "reshape by columns": lambda x: np.reshape(x, (3, -1), order="F"),
    "ravel by columns": lambda x: np.ravel(x, order="F"),
    "a kind of sort": lambda x: np.sort(-x, kind="heapsort"),
    "copy in an order": lambda x: np.copy(x, order="F"),
    "joined in a dtype": lambda x: np.concatenate([x, x], dtype=np.float64),
    "stacked in a dtype": lambda x: np.stack([x, x], axis=1, dtype=np.float64),
    "take with clip": lambda x: np.take(x, [-9, 9], mode="clip"),
    "take with wrap": lambda x: np.take(x, [-4, 4], axis=1, mode="wrap"),
    "linalg": lambda x: np.linalg.matrix_norm(x),
    "norm": lambda x: np.linalg.norm(x),
    "norm of vectors": lambda x: np.linalg.norm(x, axis=0, keepdims=True),
    "norm of all": lambda x: np.linalg.norm(x[None], keepdims=True),
    "norm of matrices": lambda x: np.linalg.norm(x[None], 1, axis=(2, 1), keepdims=True),
    "spectral norm": lambda x: np.linalg.norm(x, 2),
    "cond": lambda x: np.linalg.cond(x),
    "cond in a norm": lambda x: np.linalg.cond(x[:, :2], 1),
    "lstsq": lambda x: np.linalg.lstsq(x.T, x[0] * x[1])[0],
    "residuals": lambda x: np.linalg.lstsq(x.T, x.T * x.T)[1],
    "multi_dot": lambda x: np.linalg.multi_dot([x, x.T, x]),
    "svd without vectors": lambda x: np.linalg.svd(x, compute_uv=False),
    "R alone": lambda x: np.linalg.qr(x, mode="r"),
    "upper triangle": lambda x: np.linalg.eigvalsh(x[:, 1:], UPLO="U"),
    "vectors of the upper triangle": lambda x: abs(np.linalg.eigh(x[:, 1:], "U")[1]),
    "pinv": lambda x: np.linalg.pinv(x, 0.1),
    "rank": lambda x: np.linalg.matrix_rank(x, 3).astype(np.int32),
    "solve": lambda x: np.linalg.solve(x[:, :2], x),
    "fft2": lambda x: abs(np.fft.fft2(x, (2, 2))),
    "rfft2": lambda x: abs(np.fft.rfft2(x, norm="forward")),
    "fft": lambda x: np.fft.irfft(x, n=4, norm="ortho"),
}


@behaviour(18, "NumPy's functions and ufuncs run on the device", jax="they give NumPy arrays")
@pytest.mark.parametrize("name", some_of([*CALLS], 20))
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


def test_python_and_file_functions_read_the_array(tmp_path: Path) -> None:
    x = xp.asarray(A)
    assert np.allclose(x, A)
    assert np.array_equal(x, x)
    assert (np.shape(x), np.ndim(x), np.size(x), np.size(x, 1)) == ((2, 3), 2, 6, 3)
    assert not np.iscomplexobj(x)
    assert np.result_type(x, np.float64) == np.float64
    np.save(tmp_path / "x.npy", x)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), A)
    with pytest.raises(TracingError, match="a NumPy array was requested"):
        plugrt.jit(lambda x: np.allclose(x, A))(A)


def test_numpys_own_arrays_are_filled() -> None:
    host = A.copy()
    host += xp.asarray(A)
    np.testing.assert_array_equal(host, 2 * A)
    assert type(host) is np.ndarray
    assert np.add(xp.asarray(A), 1, out=host) is host
    np.testing.assert_array_equal(host, A + 1)
    whole = np.zeros((2, 3), np.int32)
    with pytest.raises(TypeError, match="same_kind"):
        np.add(xp.asarray(A), 1, out=whole)


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no counterpart": (np.frexp, r"numpy\.frexp has no counterpart.*numpy\.frexp\(numpy\.asarray"),
    "no ufunc of NumPy": (np.frompyfunc(abs, 1, 1), r"^abs \(vectorized\) has no counterpart"),
    "no such method": (lambda x: np.add.at(x, 0, 1), r"numpy\.add\.at has no counterpart"),
    "what to write": (np.linalg.eigvals, r"on the device, for example, numpy\.linalg\.eigvalsh"),
    "in linalg": (np.linalg.eig, r"numpy\.linalg\.eig has no counterpart"),
    "where=": (lambda x: np.add(x, 1, where=x > 1), r"numpy\.where\(condition, numpy\.add\(x\)"),
    "of a method": (lambda x: np.std(x, mean=x), r"numpy\.std of an array.*parameter mean"),
    "fields": (lambda x: np.sort(x, order="a"), r"numpy\.sort of an array.*parameter order"),
    "casting=": (lambda x: np.add(x, 1, dtype=np.int32), r"float32 to it, .*casting='unsafe'"),
}


@behaviour(18, "A NumPy function without a counterpart says so", jax="it computes on the host")
@pytest.mark.parametrize("case", WRONG)
def test_numpy_calls_without_a_meaning_are_refused(case: str) -> None:
    call, words = WRONG[case]
    with pytest.raises(ArgumentTypeError, match=words):
        call(xp.asarray(A))


WRONG_VALUES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no identity": (lambda x: np.max(x, where=M), "max has no identity: with where= pass init"),
    "not booleans": (lambda x: np.sum(x, where=x), "where of sum takes booleans; found dtype fl"),
    "kind": (
        lambda x: np.sort(x, kind="bubble"),
        "kind of numpy.sort is 'bubble'; it takes 'quick",
    ),
    "order": (lambda x: np.reshape(x, 6, order="Q"), "order of reshape is 'Q'; it is 'C'"),
    "mode": (lambda x: np.take(x, 9, mode="no"), "mode of numpy.take is 'no'; it takes 'raise'"),
    "UPLO": (lambda x: np.linalg.eigh(x[:, :2], "X"), "UPLO is 'X'; it takes 'L' and 'U'"),
    "axes": (lambda x: np.linalg.norm(x[None], 2), "norm of vectors or matrices; found axes"),
}


@pytest.mark.parametrize("case", WRONG_VALUES)
def test_values_that_numpy_does_not_take_either(case: str) -> None:
    call, words = WRONG_VALUES[case]
    with pytest.raises(ArgumentError, match=words):
        call(xp.asarray(A))


def test_results_are_put_into_numpys_arrays() -> None:
    x, sums, some = xp.asarray(A), np.zeros(3), np.full((2, 3), -1.0, np.float32)
    assert np.sum(x, axis=0, out=sums) is sums
    np.testing.assert_array_equal(sums, A.sum(axis=0))
    assert np.multiply(x, 2, out=some, where=M) is some
    np.testing.assert_array_equal(some, np.where(M, 2 * A, -1))
    assert np.fft.fft(x, out=np.zeros((2, 3), complex)).dtype == complex


def test_other_libraries_arrays_get_their_turn() -> None:
    class Theirs:
        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_: Any) -> str:
            return "theirs"

    assert np.add(xp.asarray(A), Theirs()) == "theirs"
