"""The attributes of custom calls with XLA's typed FFI, as handlers get them."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt.errors import Unimplemented
from plugrt.stablehlo.attributes import text_of
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.types import ir_type_to_dtype

CONFIG_OF_JAX = "mhlo.backend_config"
"""The attribute that contains the attributes of JAX's typed calls.

Their api_version is 1 then, and XLA reads them (``custom_call`` in ``jax._src.interpreters.mlir``
has the reason).
"""
_VECTORS: dict[Any, Any] = {
    ir.DenseBoolArrayAttr: np.bool_,
    ir.DenseI8ArrayAttr: np.int8,
    ir.DenseI16ArrayAttr: np.int16,
    ir.DenseI32ArrayAttr: np.int32,
    ir.DenseI64ArrayAttr: np.int64,
    ir.DenseF32ArrayAttr: np.float32,
    ir.DenseF64ArrayAttr: np.float64,
}
"""The attributes that are vectors, to the type of their elements."""


def typed_values(found: ir.DictAttr) -> dict[str, Any]:
    """Returns the attributes of a custom call by name, as a `plugrt.interface.Handler` gets them.

    Text, NumPy scalars and vectors, and dicts of them. Raises `Unimplemented` for others.
    """
    values = {}
    for i in range(len(found)):
        name = found[i].name
        try:
            # Workaround for jaxlib-complex-attribute: by name, since jaxlib ends the process where
            # `found[i].attr` is an array of complex numbers.
            values[name] = _typed_value(name, found[name])
        except TypeError as error:
            raise Unimplemented(
                f"the attribute {name!r} has elements that cannot be read: {error!s:.60}"
            ) from error
    return values


def _typed_value(name: str, found: ir.Attribute) -> Any:
    if isinstance(found, ir.DictAttr):
        return typed_values(found)
    if isinstance(found, ir.StringAttr):
        return text_of(found)
    if isinstance(found, ir.BoolAttr | ir.IntegerAttr | ir.FloatAttr):
        return ir_type_to_dtype(found.type).type(found.value)
    if isinstance(found, ir.DenseElementsAttr):
        return np.array(found).reshape(-1)
    element = next((e for kind, e in _VECTORS.items() if isinstance(found, kind)), None)
    if element is None:
        raise Unimplemented(f"the attribute {name!r} is {found!s:.60}")
    return np.array([*found], element)
