"""Custom calls to functions that a host registered: their attributes, arguments and results."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt.errors import Unimplemented
from plugrt.interface import Handler
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.call_attributes import CONFIG_OF_JAX, typed_values
from plugrt_numpy.data_types import Array, Function
from plugrt_numpy.operation import Operation
from plugrt_sdk import instantiate

_TYPED_FFI, _ORIGINAL = 4, 1


def lower_call(op: Operation, handler: Handler) -> Function:
    """Returns the function of a custom call that a registered handler runs.

    Tokens are not passed; a token as a result is None. As in XLA, an array in a layout that the
    call names has its shape, and its elements in the order of the memory.
    """
    version = op.integer("api_version", _ORIGINAL)
    name = "backend_config" if version == _TYPED_FFI else CONFIG_OF_JAX
    if version != _TYPED_FFI and not op.has(CONFIG_OF_JAX):
        op.refuse(f"registered handlers have api_version {_TYPED_FFI}; the call has {version}")
    config = op.attribute(name) if op.has(name) else None
    try:
        attributes = {} if config is None else typed_values(config)
    except Unimplemented as error:
        op.refuse(error.message)
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
