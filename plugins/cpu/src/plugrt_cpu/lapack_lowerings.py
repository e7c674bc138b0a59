"""`LOWERINGS`: plugrt's linear algebra as calls of the LAPACK that jaxlib drives.

The calls are those of JAX on CPUs (``jax._src.lax.linalg``), with its conventions: matrices in
column-major order, and NaN if LAPACK's ``info`` reports a failure. plugrt's definitions compute
matrices without elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from plugrt import array_api as xp
from plugrt import lax
from plugrt.interface import TensorType
from plugrt.plugins.plugin import LoweringContext

_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_INDEX = np.dtype(np.int32)


def _call(
    routine: str,
    operands: Sequence[Any],
    results: Sequence[TensorType],
    aliases: Mapping[int, int] | None = None,
    **letters: str,
) -> list[Any]:
    """Returns the results of a routine of LAPACK's, for the dtype of the first operand.

    Operands and results of the highest rank are matrices, the others vectors and numbers.
    """
    rank = operands[0].ndim
    found: list[Any] = lax.custom_call(
        f"lapack_{_LETTERS[operands[0].dtype.name]}{routine}_ffi",
        operands,
        list(results),
        backend_config={name: np.uint8(ord(letter)) for name, letter in letters.items()},
        operand_layouts=[_order(len(x.shape), rank) for x in operands],
        result_layouts=[_order(len(t.shape), rank) for t in results],
        output_operand_aliases=aliases,
        batch_dims=rank - 2,
    )
    return found


def _order(rank: int, of_matrices: int) -> list[int]:
    """Returns dimensions from the fastest to the slowest: of matrices, the rows first."""
    order = [*range(rank)]
    return [*order[:-2], rank - 1, rank - 2][::-1] if rank == of_matrices else order[::-1]


def _like(x: Any, *trailing: int) -> TensorType:
    return TensorType((*x.shape[:-2], *trailing), x.dtype)


def _info(x: Any) -> TensorType:
    return TensorType(x.shape[:-2], _INDEX)


def _nan_unless(worked: Any, x: Any) -> Any:
    """Returns ``x``, with NaN for the members of the stack for which a routine failed."""
    return xp.where(xp.reshape(worked, (*worked.shape, *[1] * (x.ndim - worked.ndim))), x, np.nan)


def _cholesky(context: LoweringContext, x: Any) -> Any:
    uplo = "U" if context.attributes["upper"] else "L"
    factor, info = _call("potrf", [x], [_like(x, *x.shape[-2:]), _info(x)], {0: 0}, uplo=uplo)
    return _nan_unless(info == 0, factor)


def _eigh(context: LoweringContext, x: Any) -> Any:
    n = x.shape[-1]
    vectors = context.attributes["vectors"]
    values = context.result_types[0]
    found, w, info = _call(
        "heevd" if x.dtype.kind == "c" else "syevd",
        [x],
        [_like(x, n, n), values, _info(x)],
        {0: 0},
        mode="V" if vectors else "N",
        uplo="L",
    )
    worked = info == 0
    w = _nan_unless(worked, w)
    return (w, _nan_unless(worked, found)) if vectors else w


def _lu(context: LoweringContext, x: Any) -> Any:
    m, n = x.shape[-2:]
    k = min(m, n)
    pivots = TensorType((*x.shape[:-2], k), _INDEX)
    factors, pivot, info = _call("getrf", [x], [_like(x, m, n), pivots, _info(x)], {0: 0})
    pivot = pivot - 1  # LAPACK counts from 1
    swaps = xp.sum(pivot != np.arange(k, dtype=_INDEX), axis=-1, dtype=_INDEX)
    return _nan_unless(info >= 0, factors), _permutation(pivot, m), swaps


def _permutation(pivot: Any, m: int) -> Any:
    """Returns the order of ``m`` rows after each row k has changed places with row ``pivot[k]``."""
    rows = np.arange(m, dtype=_INDEX)

    def exchange(k: Any, order: Any) -> Any:
        other = lax.dynamic_slice_in_dim(pivot, k, 1, -1)
        mine = lax.dynamic_slice_in_dim(order, k, 1, -1)
        theirs = xp.take_along_axis(order, other, axis=-1)
        return xp.where(rows == k, theirs, xp.where(rows == other, mine, order))

    start = xp.broadcast_to(xp.asarray(rows), (*pivot.shape[:-1], m))
    return lax.fori_loop(np.int32(0), np.int32(pivot.shape[-1]), exchange, start)


def _qr(context: LoweringContext, x: Any) -> Any:
    m, n = x.shape[-2:]
    k = min(m, n)
    columns = m if context.attributes["complete"] else k
    packed, scales = _call("geqrf", [x], [_like(x, m, n), _like(x, k)], {0: 0})
    reflectors = packed[..., :columns]
    if columns > n:
        none = xp.zeros((*x.shape[:-2], m, columns - n), dtype=x.dtype)
        reflectors = xp.concat([packed, none], axis=-1)
    routine = "ungqr" if x.dtype.kind == "c" else "orgqr"
    [q] = _call(routine, [reflectors, scales], [_like(x, m, columns)], {0: 0})
    return q, xp.triu(packed[..., :columns, :])


def _svd(context: LoweringContext, x: Any) -> Any:
    m, n = x.shape[-2:]
    k = min(m, n)
    whole, vectors = context.attributes["full_matrices"], context.attributes["vectors"]
    values = context.result_types[1 if vectors else 0]
    u, vh = (m, m if whole else k), (n if whole else k, n)
    _, s, left, right, info = _call(
        "gesdd",
        [x],
        [_like(x, m, n), values, _like(x, *u), _like(x, *vh), _info(x)],
        {0: 0},
        mode=("A" if whole else "S") if vectors else "N",
    )
    found = [_nan_unless(info == 0, each) for each in (left, s, right)]
    return found if vectors else found[1]


def _triangular_solve(context: LoweringContext, a: Any, b: Any) -> Any:
    attributes = context.attributes
    return _call(
        "trsm",
        [a, b],
        [_like(b, *b.shape[-2:])],
        {0: 1},
        side="L" if attributes["left"] else "R",
        uplo="L" if attributes["lower"] else "U",
        trans_x="C" if attributes["adjoint"] else "N",
        diag="U" if attributes["unit_diagonal"] else "N",
    )


def _of_elements(lowering: Callable[..., Any]) -> Callable[..., Any]:
    def lower(context: LoweringContext, *operands: Any) -> Any:
        return lowering(context, *operands) if all(x.size for x in operands) else None

    return lower


LOWERINGS: Mapping[str, Callable[..., Any]] = {
    "plugrt.linalg.cholesky": _of_elements(_cholesky),
    "plugrt.linalg.eigh": _of_elements(_eigh),
    "plugrt.linalg.lu": _of_elements(_lu),
    "plugrt.linalg.qr": _of_elements(_qr),
    "plugrt.linalg.svd": _of_elements(_svd),
    "plugrt.linalg.triangular_solve": _of_elements(_triangular_solve),
}
"""By the names of plugrt's operations; see `plugrt.plugins.Plugin.lowerings`."""
