"""Custom calls to functions that a host registered: their attributes, arguments and results."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt.interface import Handler
from plugrt.stablehlo.attributes import text_of
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.types import ir_type_to_dtype
from plugrt_numpy.data_types import Array, Function
from plugrt_numpy.operation import Operation
from plugrt_sdk import instantiate

_TYPED_FFI, _ORIGINAL = 4, 1
OF_JAX = "mhlo.backend_config"
"""The attribute that contains the attributes of JAX's typed calls.

Their api_version is 1 then, and XLA reads them (``custom_call`` in ``jax._src.interpreters.mlir``
has the reason).
"""
_ARRAYS: dict[Any, Any] = {
    ir.DenseBoolArrayAttr: np.bool_,
    ir.DenseI8ArrayAttr: np.int8,
    ir.DenseI16ArrayAttr: np.int16,
    ir.DenseI32ArrayAttr: np.int32,
    ir.DenseI64ArrayAttr: np.int64,
    ir.DenseF32ArrayAttr: np.float32,
    ir.DenseF64ArrayAttr: np.float64,
}
"""The attributes that are vectors, to the type of their elements."""


def lower_call(op: Operation, handler: Handler) -> Function:
    """Returns the function of a custom call that a registered handler runs.

    Tokens are not passed; a token as a result is None. As in XLA, an array in a layout that the
    call names has its shape, and its elements in the order of the memory.
    """
    version = op.integer("api_version", _ORIGINAL)
    name = "backend_config" if version == _TYPED_FFI else OF_JAX
    if version != _TYPED_FFI and not op.has(OF_JAX):
        op.refuse(f"registered handlers have api_version {_TYPED_FFI}; the call has {version}")
    config = op.attribute(name) if op.has(name) else None
    attributes = {} if config is None else read_attributes(op, config)
    kinds = op.result_types
    for kind, result in zip(kinds, op.ir.results, strict=True):
        if kind is None and not _is_token(result):
            op.refuse(f"a handler returns arrays of known shapes, not {result.type}")

    run = instantiate(handler, attributes)
    arrays = [i for i, operand in enumerate(op.ir.operands) if not _is_token(operand)]
    taken, returned = _layouts(op, "operand_layouts"), _layouts(op, "result_layouts")

    def call(*operands: Any) -> Any:
        given = [_view(_in_memory_order(operands[i], taken.get(i))) for i in arrays]
        results = [None if kind is None else np.zeros(kind.shape, kind.dtype) for kind in kinds]
        run(given, [result for result in results if result is not None], attributes)
        for i, order in returned.items():
            results[i] = _from_memory_order(results[i], order)
        return results[0] if len(results) == 1 else tuple(results)

    return call


def _layouts(op: Operation, name: str) -> dict[int, list[int]]:
    """Returns the dimensions, from the slowest to the fastest, of arrays that are not row-major."""
    stated = op.attribute(name) if op.has(name) else []
    orders = [[*ir.DenseIntElementsAttr(each)][::-1] for each in stated]
    return {i: order for i, order in enumerate(orders) if order != sorted(order)}


def _in_memory_order(array: Array, order: list[int] | None) -> Array:
    return array if order is None else array.transpose(order).reshape(array.shape)


def _from_memory_order(array: Any, order: list[int]) -> Array:
    lying: Array = array.reshape([array.shape[i] for i in order])
    return lying.transpose(np.argsort(order))


def _is_token(value: Any) -> bool:
    return str(value.type) == "!stablehlo.token"


def _view(operand: Array) -> Array:
    """Returns a row-major array that handlers cannot write to."""
    view = np.asarray(operand, order="C").view()
    view.flags.writeable = False
    return view


def read_attributes(op: Operation, found: ir.DictAttr) -> dict[str, Any]:
    """Returns attributes by name: text, NumPy scalars and vectors, and dicts of them."""
    attributes = {}
    for i in range(len(found)):
        name = found[i].name
        try:
            # Workaround for jaxlib-complex-attribute: by name, since jaxlib ends the process where
            # `found[i].attr` is an array of complex numbers.
            attributes[name] = _read_attribute(op, name, found[name])
        except TypeError as error:
            op.refuse(f"the attribute {name!r} has elements that cannot be read: {error!s:.60}")
    return attributes


def _read_attribute(op: Operation, name: str, found: ir.Attribute) -> Any:
    if isinstance(found, ir.DictAttr):
        return read_attributes(op, found)
    if isinstance(found, ir.StringAttr):
        return text_of(found)
    if isinstance(found, ir.BoolAttr | ir.IntegerAttr | ir.FloatAttr):
        return ir_type_to_dtype(found.type).type(found.value)
    if isinstance(found, ir.DenseElementsAttr):
        return np.array(found).reshape(-1)
    element = next((e for kind, e in _ARRAYS.items() if isinstance(found, kind)), None)
    if element is None:
        op.refuse(f"the attribute {name!r} is {found!s:.60}")
    return np.array([*found], element)
