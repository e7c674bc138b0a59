"""Operations that test whether a value contains a NaN or an infinity."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt.stablehlo.bindings import hlo, ir
from plugrt.stablehlo.types import element_type, ir_type_to_dtype, tensor_type


def is_floating(value: ir.Value) -> bool:
    """Whether a value is an array of floating or complex numbers, with a static shape."""
    type_ = value.type
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        return False
    return isinstance(type_.element_type, ir.FloatType | ir.ComplexType)


def holds_one(value: Any, nans: bool, infs: bool) -> object:
    """Returns a 0-d boolean: whether any element is a NaN (``nans``) or infinite (``infs``)."""
    type_ = value.type
    if isinstance(type_.element_type, ir.ComplexType):
        parts = [holds_one(part(value), nans, infs) for part in (hlo.real, hlo.imag)]
        return hlo.or_(*parts)
    single = element_type(np.dtype(np.float32))
    if ir_type_to_dtype(type_.element_type).itemsize < 4:
        value = hlo.convert(ir.RankedTensorType.get(type_.shape, single), value)
    found = []
    if nans:
        found.append(hlo.compare(value, value, _direction("NE")))
    if infs:
        element = value.type.element_type
        bound = hlo.constant(
            ir.DenseElementsAttr.get_splat(value.type, ir.FloatAttr.get(element, float("inf")))
        )
        found.append(hlo.compare(hlo.abs(value), bound, _direction("EQ")))
    return _any(found[0] if len(found) == 1 else hlo.or_(*found))


def _direction(name: str) -> object:
    return hlo.ComparisonDirectionAttr.get(name)


def _any(bits: Any) -> object:
    rank = bits.type.rank
    if not rank:
        return bits
    scalar = tensor_type([], np.dtype(np.bool_))
    none = hlo.constant(ir.DenseElementsAttr.get_splat(scalar, ir.BoolAttr.get(False)))
    reduction = hlo.ReduceOp([scalar], [bits], [none], list(range(rank)))
    block = ir.Block.create_at_start(reduction.regions[0], [scalar, scalar])
    with ir.InsertionPoint(block):
        hlo.return_([hlo.or_(*block.arguments)])
    return reduction.results[0]
