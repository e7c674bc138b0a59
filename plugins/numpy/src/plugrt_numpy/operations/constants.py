"""The value of ``stablehlo.constant``, for every dtype."""

from __future__ import annotations

import math
import re

import numpy as np

from plugrt.interface import TensorType
from plugrt.stablehlo.attributes import constant_literal
from plugrt.stablehlo.bindings import ir
from plugrt_numpy.data_types import (
    Array,
    Dtype,
    bits_dtype,
    dtype_kind,
    is_complex,
    is_float,
)
from plugrt_numpy.operation import Operation

_TOKEN = re.compile(r"0x[0-9A-Fa-f]+|true|false|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def constant_value(op: Operation) -> Array:
    """Returns a read-only array; one with equal elements has the memory of one element."""
    kind, operation = op.result_types[0], op.ir
    if kind.dtype.kind in "biuf" and kind.dtype.isbuiltin == 1:
        attribute = operation.attributes["value"]
        if isinstance(attribute, ir.DenseElementsAttr):
            if attribute.is_splat and kind.shape and 0 not in kind.shape:
                scalar = _elements(_TOKEN.findall(constant_literal(operation)), kind.dtype)
                return np.broadcast_to(scalar[0], kind.shape)
            # A copy: the attribute's memory is the module's, and booleans come as bits.
            array = np.array(attribute, dtype=kind.dtype).reshape(kind.shape)
            array.flags.writeable = False
            return array
    literal = constant_literal(operation)
    if not literal and math.prod(kind.shape):
        op.refuse("its elements are not in the program's text, but in a resource")
    return _parse(literal, kind)


def _parse(literal: str, kind: TensorType) -> Array:
    """Parses a ``dense<...>``: the bindings provide no buffer of small or complex elements."""
    size = math.prod(kind.shape)
    if literal.startswith('"0x'):
        array = np.frombuffer(bytes.fromhex(literal[3:-1]), kind.dtype)
    else:
        array = _elements(_TOKEN.findall(literal), kind.dtype)
    if array.size == size:
        array = array.reshape(kind.shape)
    else:
        # An array without elements may still have a literal, of one value.
        array = np.broadcast_to(array[0], kind.shape) if size else np.empty(kind.shape, kind.dtype)
    array.flags.writeable = False
    return array


def _elements(tokens: list[str], dtype: Dtype) -> Array:
    if dtype_kind(dtype) == "b":
        return np.array([t == "true" for t in tokens], dtype)
    if is_complex(dtype):
        part: Dtype = np.dtype(f"f{dtype.itemsize // 2}")
        return _elements(tokens, part).view(dtype)
    if not is_float(dtype):
        return np.array([int(t, 0) for t in tokens]).astype(dtype)
    bits = bits_dtype(dtype)
    return np.array(
        [
            bits.type(int(t, 16)).view(dtype) if t.startswith("0x") else dtype.type(float(t))
            for t in tokens
        ],
        dtype,
    )
