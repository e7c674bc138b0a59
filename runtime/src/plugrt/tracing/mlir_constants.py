"""MLIR constants from host data; equal ones within a scope share one value."""

from __future__ import annotations

from math import prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from plugrt.execution.arrays.host_data import check_dtype
from plugrt.stablehlo.bindings import hlo, ir

_WRITTEN_OUT = 1 << 16
"""The limit in bytes below which a complex constant is made element by element."""


class _Scope(Protocol):
    @property
    def constants(self) -> dict[object, ir.Value]: ...


class Module(Protocol):
    """The methods of a `Trace` that a constant needs from its module."""

    @property
    def scope(self) -> _Scope | None: ...
    def location(self) -> ir.Location: ...
    def mlir_type(self, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> ir.Type: ...


def constant_value(trace: Module, data: npt.NDArray[np.generic]) -> ir.Value:
    """Returns a host array as a constant in the current scope."""
    check_dtype(data.dtype, "the constant")
    key = (data.tobytes(), data.dtype, data.shape)
    return _get_or_make(
        trace, key, lambda: dense_attribute(data, trace.mlir_type(data.shape, data.dtype))
    )


def splat_value(trace: Module, scalar: npt.NDArray[np.generic], shape: tuple[int, ...]) -> ir.Value:
    """Returns a constant of ``shape`` that holds a 0-d host array everywhere."""
    key = (scalar.tobytes(), scalar.dtype, shape, "splat")
    return _get_or_make(trace, key, lambda: _splat_attribute(trace, scalar, shape))


def constant_data(key: Any) -> npt.NDArray[np.generic]:
    """Returns the contents of a constant, by its key in `Scope.constants`."""
    data, dtype, shape, *_ = key
    held = np.frombuffer(data, dtype)
    return np.full(shape, held[0]) if len(key) > 3 else held.reshape(shape)


def constant_nbytes(key: Any) -> int:
    """Returns the size of `constant_data` in bytes."""
    _, dtype, shape, *_ = key
    return int(prod(shape) * dtype.itemsize)


def can_splat(dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> bool:
    """Whether `splat_value` accepts an array; MLIR's bindings have no complex scalars.

    Small complex arrays are written element by element, and MLIR recognises equal elements.
    """
    return dtype.kind != "c" or prod(shape) * dtype.itemsize <= _WRITTEN_OUT


def _get_or_make(trace: Module, key: Any, attribute: Any) -> ir.Value:
    assert trace.scope is not None
    constants = trace.scope.constants
    value = constants.get(key)
    if value is None:
        value = constants[key] = hlo.constant(attribute(), loc=trace.location())
    return value


def _splat_attribute(
    trace: Module, scalar: npt.NDArray[np.generic], shape: tuple[int, ...]
) -> ir.Attribute:
    tensor = trace.mlir_type(shape, scalar.dtype)
    element = tensor.element_type
    if scalar.dtype.kind == "c":
        return dense_attribute(np.full(shape, scalar), tensor)
    if scalar.dtype == np.bool_:
        return ir.DenseElementsAttr.get_splat(tensor, ir.BoolAttr.get(bool(scalar)))
    if isinstance(element, ir.IntegerType):
        # MLIR holds bits: an unsigned value above the signed range is written as the negative one
        # with the same bits.
        value, width = int(scalar), element.width
        if value >= 1 << (width - 1):
            value -= 1 << width
        return ir.DenseElementsAttr.get_splat(tensor, ir.IntegerAttr.get(element, value))
    return ir.DenseElementsAttr.get_splat(tensor, ir.FloatAttr.get(element, float(scalar)))


def dense_attribute(data: npt.NDArray[np.generic], tensor: ir.Type) -> ir.DenseElementsAttr:
    """Returns the contents of a host array as an MLIR attribute of its tensor type."""
    contiguous = np.ascontiguousarray(data)
    if data.dtype == np.bool_:
        if data.size and (data.all() or not data.any()):
            return ir.DenseElementsAttr.get_splat(tensor, ir.BoolAttr.get(bool(data.flat[0])))
        if data.size:
            return ir.DenseElementsAttr.get(contiguous)  # minors differ in how bits are packed
    if data.size == 0:
        return ir.DenseElementsAttr.get(
            np.zeros(0, np.uint8), type=tensor.element_type, shape=list(data.shape)
        )
    if data.dtype.kind == "V" or data.dtype.name in ("int4", "uint4"):
        raw = contiguous.view(f"u{data.dtype.itemsize}")
        return ir.DenseElementsAttr.get(raw, type=tensor.element_type, shape=list(data.shape))
    return ir.DenseElementsAttr.get(contiguous, type=tensor.element_type, shape=list(data.shape))
