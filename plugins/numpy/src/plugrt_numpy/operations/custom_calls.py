"""``custom_call``: the targets that JAX and Shardy write on every platform, and LAPACK's."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt_numpy.data_types import Array, Function, compute_wide
from plugrt_numpy.handlers import lower_call
from plugrt_numpy.operation import Lowering, Operation
from plugrt_numpy.operations import lapack
from plugrt_numpy.operations.control_flow import unpack_single


def _pass_on(op: Operation) -> Function:
    count = len(op.ir.results)
    return unpack_single(op, lambda *values: values[:count])


def _qr(op: Operation) -> Function:
    """``Qr``: Householder vectors and R in one matrix, and the factors tau (LAPACK's geqrf)."""

    def factor(x: Array) -> tuple[Array, Array]:
        packed, taus = np.linalg.qr(x, mode="raw")
        return np.swapaxes(packed, -1, -2), taus

    return factor


def _householder_product(op: Operation) -> Function:
    """``ProductOfElementaryHouseholderReflectors``: Q's columns from vectors and taus (orgqr)."""

    return compute_wide(_multiply_reflections, op.dtype)


_PANEL = 32


def _multiply_reflections(a: Array, taus: Array) -> Array:
    """Returns the first columns of a product of reflections, as many as ``a`` has.

    By panels of columns: their reflections together are ``1 - v @ t @ v^H``, as in LAPACK's larft.
    """
    rows, columns = a.shape[-2:]
    count = taus.shape[-1]
    q = np.broadcast_to(np.eye(rows, columns, dtype=a.dtype), a.shape).copy()
    for start in reversed(range(0, count, _PANEL)):
        stop = min(start + _PANEL, count)
        v = np.tril(a[..., start:, start:stop], -1)
        each = np.arange(stop - start)
        v[..., each, each] = 1
        adjoint = np.conj(np.swapaxes(v, -1, -2))
        inner, own = adjoint @ v, taus[..., start:stop]
        t = np.zeros_like(inner)
        for i in each:
            before = t[..., :i, :i] @ inner[..., :i, i : i + 1]
            t[..., :i, i] = -own[..., i, None] * before[..., 0]
            t[..., i, i] = own[..., i]
        rest = q[..., start:, :]
        rest -= v @ (t @ (adjoint @ rest))
    return q


TARGETS: dict[str, Lowering] = {
    "LayoutConstraint": _pass_on,
    "ProductOfElementaryHouseholderReflectors": _householder_product,
    "Qr": _qr,
    "SPMDFullToShardShape": _pass_on,
    "SPMDShardToFullShape": _pass_on,
    "Sharding": _pass_on,
    "annotate_device_placement": _pass_on,
    "dce_sink": _pass_on,
    "xla.sdy.FuncResultSharding": _pass_on,
    "xla.sdy.PropagationBarrier": _pass_on,
    **lapack.TARGETS,
}
"""The name of a target to its lowering."""


def _custom_call(op: Operation) -> Function:
    target = op.string("call_target_name")
    handler = op.module.handlers.get(target)
    if handler is not None:
        return lower_call(op, handler)
    lowering: Any = TARGETS.get(target)
    if lowering is None:
        known = sorted({*TARGETS, *op.module.handlers})
        op.refuse(f"it has no custom call {target!r}; it has {', '.join(known)}")
    function: Function = lowering(op)
    return function


OPERATIONS: dict[str, Lowering] = {"stablehlo.custom_call": _custom_call}
"""Operation name to lowering."""
