"""`parameter_types`: what an executable takes, read from its optimised program without jaxlib.

PJRT states the types of an executable's results, not those of its parameters, and backends compare
sizes only: integers given for floats would be read as other numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from plugrt.capi.abi.proto_wire import fields, packed
from plugrt.errors import Unimplemented
from plugrt.interface import Executable, TensorType

# Field numbers of HloModuleProtoWithConfig, HloModuleProto, ProgramShapeProto and ShapeProto, and
# the values of PrimitiveType: xla/service/hlo.proto and xla/xla_data.proto.
_MODULE_OF_CONFIG = 1
_HOST_PROGRAM_SHAPE = 4
_PARAMETERS = 1
_ELEMENT_TYPE, _DIMENSIONS = 2, 3
PRIMITIVE_TYPES: dict[int, str] = {
    1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64",
    6: "uint8", 7: "uint16", 8: "uint32", 9: "uint64",
    10: "float16", 11: "float32", 12: "float64", 15: "complex64", 16: "bfloat16",
    18: "complex128", 19: "float8_e5m2", 20: "float8_e4m3fn", 21: "int4", 22: "uint4",
    23: "float8_e4m3b11fnuz", 24: "float8_e5m2fnuz", 25: "float8_e4m3fnuz", 26: "int2",
    27: "uint2", 28: "float8_e4m3", 29: "float8_e3m4", 32: "float4_e2m1fn",
    33: "float8_e8m0fnu",
}  # fmt: skip


def parameter_types(executable: Executable) -> tuple[TensorType, ...] | None:
    """Returns the types of the parameters, None where the backend does not show its program.

    None, too, for a program in another format than HLO, one whose parameters are tuples, and one
    that runs partitioned, whose parameters are then parts.
    """
    if executable.num_partitions != 1:
        return None
    try:
        program = executable.optimized_program()
    except Unimplemented:
        return None
    if program.format not in ("hlo", "hlo_with_config"):
        return None
    code = program.code
    try:
        if program.format == "hlo_with_config":
            (code,) = _messages(code, _MODULE_OF_CONFIG)
        (shape,) = _messages(code, _HOST_PROGRAM_SHAPE)
        return tuple(_tensor_type(parameter) for parameter in _messages(shape, _PARAMETERS))
    except (ValueError, KeyError):
        return None  # not the messages that we know; the backend judges the arguments then


def _messages(content: bytes, wanted: int) -> Iterator[bytes]:
    return (v for n, v in fields(content) if n == wanted and isinstance(v, bytes))


def _tensor_type(shape: bytes) -> TensorType:
    element, dimensions = 0, []
    for number, value in fields(shape):
        if number == _ELEMENT_TYPE and isinstance(value, int):
            element = value
        elif number == _DIMENSIONS:
            dimensions += packed(value) if isinstance(value, bytes) else [value]
    name = PRIMITIVE_TYPES[element]
    return TensorType(tuple(dimensions), np.dtype(getattr(ml_dtypes, name, None) or name))
