"""Custom calls of LAPACK's drivers, as JAX writes them for CPUs, by ``numpy.linalg``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from plugrt.stablehlo.call_attributes import CONFIG_OF_JAX
from plugrt_numpy.data_types import Array, Function
from plugrt_numpy.operation import Lowering, Operation
from plugrt_numpy.operations.control_flow import unpack_single
from plugrt_numpy.operations.lu import factor_lu, permutation_of


def _letter(op: Operation, name: str) -> str:
    """Returns a parameter of LAPACK's: a letter, such as ``V`` for "vectors too"."""
    place = CONFIG_OF_JAX if op.has(CONFIG_OF_JAX) else "backend_config"
    return chr(int(op.attribute(place)[name].value))


def _of_each_matrix(op: Operation, compute: Callable[[Array], Sequence[Array]]) -> Function:
    """Returns the function of a batch of matrices whose last result reports failures.

    A matrix for which the iteration does not converge (one with NaNs, for instance) has 1 there,
    and NaNs for results; the others have 0.
    """
    kinds = op.result_types

    def run(x: Array) -> list[Array]:
        failed = np.zeros(kinds[-1].shape, kinds[-1].dtype)
        try:
            return [*compute(x), failed]
        except np.linalg.LinAlgError:
            found = [np.full(kind.shape, np.nan, kind.dtype) for kind in kinds[:-1]]
        for place in np.ndindex(failed.shape):
            try:
                for out, value in zip(found, compute(x[place]), strict=True):
                    out[place] = value
            except np.linalg.LinAlgError:
                failed[place] = 1
        return [*found, failed]

    return unpack_single(op, run)


def _eigh(op: Operation) -> Function:
    """``syevd``, ``heevd``: eigenvectors (or the matrix, where none are wanted), eigenvalues."""
    triangle: Literal["L", "U"] = "L" if _letter(op, "uplo") == "L" else "U"
    vectors = _letter(op, "mode") == "V"

    def compute(x: Array) -> tuple[Array, Array]:
        if not vectors:
            return x, np.linalg.eigvalsh(x, triangle)
        values, found = np.linalg.eigh(x, triangle)
        return found, values

    return _of_each_matrix(op, compute)


def _svd(op: Operation) -> Function:
    """``gesdd``, ``gesvd``: the rest of the matrix, singular values, ``u``, ``v`` adjoint;
    mode A has square ``u`` and ``v``, S their first vectors, N none."""
    mode, (_, _, left, right, _) = _letter(op, "mode"), op.result_types

    def compute(x: Array) -> tuple[Array, ...]:
        if mode == "N":
            batch = x.shape[:-2]
            empty = (np.zeros((*batch, *kind.shape[-2:]), kind.dtype) for kind in (left, right))
            return x, np.linalg.svd(x, compute_uv=False), *empty
        u, values, v = np.linalg.svd(x, full_matrices=mode == "A")
        return x, values, u, v

    return _of_each_matrix(op, compute)


def _eig(op: Operation) -> Function:
    """``geev``: eigenvalues (of real matrices their two parts), left and right eigenvectors."""
    left, vectors = (_letter(op, f"compute_{side}") == "V" for side in ("left", "right"))
    is_real = len(op.ir.results) == 5
    dtype = op.result_types[-2].dtype

    def compute(x: Array) -> tuple[Array, ...]:
        if vectors:
            values, right = np.linalg.eig(x)
        else:
            values, right = np.linalg.eigvals(x), np.zeros(x.shape)
        found = _left_vectors(x, values) if left else np.zeros(x.shape)
        values, *both = (part.astype(dtype, copy=False) for part in (values, found, right))
        parts = (values.real, values.imag) if is_real else (values,)
        return *parts, *both

    return _of_each_matrix(op, compute)


def _left_vectors(x: Array, values: Array) -> Array:
    """Returns the left eigenvectors: the adjoint's, in the order of the eigenvalues."""
    conjugates, vectors = np.linalg.eig(x.conj().swapaxes(-1, -2))
    for place in np.ndindex(x.shape[:-2]):
        distances = np.abs(values[place][:, None] - conjugates[place].conj())
        order = []
        for row in distances:
            order.append(at := int(np.argmin(row)))
            distances[:, at] = np.inf
        vectors[place] = vectors[place][:, order]
    return vectors


def _lu(op: Operation) -> Function:
    """``getrf``: L and U in one matrix, the rows exchanged, and where U is singular."""
    return factor_lu


def _pivots_to_permutation(op: Operation) -> Function:
    """As JAX's custom call on GPUs; on CPUs JAX has a loop, one exchange at a time."""
    rows = op.shape[-1]
    return lambda pivots: permutation_of(pivots, rows)


TARGETS: dict[str, Lowering] = {
    **{f"lapack_{kind}_ffi": _eigh for kind in ("ssyevd", "dsyevd", "cheevd", "zheevd")},
    **{f"lapack_{letter}{name}_ffi": _svd for letter in "sdcz" for name in ("gesdd", "gesvd")},
    **{f"lapack_{letter}geev_ffi": _eig for letter in "sdcz"},
    **{f"lapack_{letter}getrf_ffi": _lu for letter in "sdcz"},
    "numpy_lu_pivots_to_permutation": _pivots_to_permutation,
}
"""The name of a target to its lowering."""
