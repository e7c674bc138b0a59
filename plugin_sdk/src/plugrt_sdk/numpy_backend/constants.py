"""The value of ``stablehlo.constant``, for every dtype."""

from __future__ import annotations

import re

import numpy as np

from plugrt.interface import TensorType
from plugrt.stablehlo.bindings import ir
from plugrt_sdk.numpy_backend.data_types import (
    Array,
    Dtype,
    bits_dtype,
    dtype_kind,
    is_complex,
    is_float,
)

_LITERAL = re.compile(r"dense<(.*)> : ", re.DOTALL)
_TOKEN = re.compile(r"0x[0-9A-Fa-f]+|true|false|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def constant_value(operation: ir.Operation, kind: TensorType) -> Array:
    """Returns a read-only array; one of equal elements takes the memory of one."""
    if kind.dtype.kind in "biuf" and kind.dtype.isbuiltin == 1:
        attribute = operation.attributes["value"]
        if isinstance(attribute, ir.DenseElementsAttr):
            if attribute.is_splat and kind.shape and 0 not in kind.shape:
                scalar = _parse(str(attribute), TensorType((), kind.dtype))
                return np.broadcast_to(scalar, kind.shape)
            # A copy: the attribute's memory is the module's, and booleans come as bits.
            array = np.array(attribute, dtype=kind.dtype).reshape(kind.shape)
            array.flags.writeable = False
            return array
    return _parse(operation.get_asm(large_elements_limit=None), kind)


def _parse(text: str, kind: TensorType) -> Array:
    """Reads ``dense<...>``: the bindings give no buffer of small or complex elements."""
    found = _LITERAL.search(text)
    literal = found[1] if found else ""
    size = int(np.prod(kind.shape, dtype=np.int64))
    if literal.startswith('"0x'):
        array = np.frombuffer(bytes.fromhex(literal[3:-1]), kind.dtype)
    else:
        array = _elements(_TOKEN.findall(literal), kind.dtype)
    if array.size == size:
        array = array.reshape(kind.shape)
    else:
        array = np.broadcast_to(array[0] if size else array[:0].reshape(0), kind.shape)
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
