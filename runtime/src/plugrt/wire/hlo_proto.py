"""Reads parameter types, layouts and donations from an HLO program's bytes, without jaxlib.

`write_tiles` writes ``xla.OpSharding``: the sharding that a compiler chose for an array.

Backends give it as an ``HloModuleProto`` or as an ``HloModuleProtoWithConfig``; the messages and
their field numbers are defined in ``xla/service/hlo.proto`` and ``xla/xla_data.proto``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import ml_dtypes
import numpy as np

from plugrt.errors import Unimplemented
from plugrt.interface import Layout, Program, TensorType
from plugrt.wire.protobuf import (
    Content,
    integer,
    integers,
    message,
    messages,
    varint,
)

FORMATS = ("hlo", "hlo_with_config")

_MODULE_OF_CONFIG = 1
_MODULE_NAME = 1
_HOST_PROGRAM_SHAPE, _PARAMETERS, _RESULT = 4, 1, 2
_ELEMENT_TYPE, _DIMENSIONS, _TUPLE_SHAPES, _LAYOUT, _IS_DYNAMIC = 2, 3, 4, 5, 6
_MINOR_TO_MAJOR, _TILES, _ELEMENT_BITS, _TAIL_ALIGNMENT = 1, 6, 7, 16
_TILE_DIMENSIONS = 1
_MAX_SIZE = 2**63 - 1
_TUPLE = 13
# HloInputOutputAliasProto: its field in the module, then, in an entry, the fields of the
# parameter's number and of the index within a tuple parameter.
_ALIASES, _ALIAS_PARAMETER, _ALIAS_INDEX = 8, 2, 3
_ENTRIES = 1

# The sharding of a partitioned program's results, and within it the shardings of a tuple's
# elements.
_OUTPUT_SHARDING, _SHARDING_TYPE, _SHARDINGS, _OF_TUPLE = 12, 1, 5, 2
_PARAMETER_SHARDINGS = 14

PRIMITIVE_TYPES: dict[int, str] = {
    1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64",
    6: "uint8", 7: "uint16", 8: "uint32", 9: "uint64",
    10: "float16", 11: "float32", 12: "float64", 15: "complex64", 16: "bfloat16",
    18: "complex128", 19: "float8_e5m2", 20: "float8_e4m3fn", 21: "int4", 22: "uint4",
    23: "float8_e4m3b11fnuz", 24: "float8_e5m2fnuz", 25: "float8_e4m3fnuz", 26: "int2",
    27: "uint2", 28: "float8_e4m3", 29: "float8_e3m4", 32: "float4_e2m1fn",
    33: "float8_e8m0fnu",
}  # fmt: skip
"""Values of ``PrimitiveType`` to dtypes."""


def read_module(program: Program) -> Content:
    """Returns the ``HloModuleProto`` of a program.

    Raises `Unimplemented` for another format than `FORMATS` or if it contains no module, and
    `ValueError` for bytes that are no protocol buffer.
    """
    if program.format not in FORMATS:
        raise Unimplemented(
            f"the optimised program {program.name!r} is in the format {program.format!r}; only "
            f"{' and '.join(FORMATS)} can be read here"
        )
    if program.format == "hlo":
        return program.code
    found = messages(program.code, _MODULE_OF_CONFIG)
    if not found:
        raise Unimplemented("the optimised program holds no HLO module")
    return found[0]


def one_message(content: Content, number: int, what: str) -> memoryview:
    """Returns the message of a field that occurs once; raises `ValueError` otherwise."""
    found = messages(content, number)
    if len(found) != 1:
        raise ValueError(f"it has {what} (field {number}) {len(found)} times; once was expected")
    return found[0]


def last_integer(content: Content, number: int) -> int:
    """Returns the last integer of a field; 0 without one, as protobuf omits zeros."""
    return (integers(content, number) or [0])[-1]


def last_text(content: Content, number: int) -> str:
    """Returns the last text of a field; replaces bytes that are not UTF-8."""
    return b"".join(messages(content, number)[-1:]).decode(errors="replace")


def module_name(module: Content) -> str:
    """Returns the name that a module states."""
    return last_text(module, _MODULE_NAME)


def flat_parameters(module: Content) -> tuple[tuple[TensorType, ...], bool]:
    """Returns the types of the parameters, or of the elements of the only one if it is a tuple.

    The second result is whether it is a tuple. Raises as `parameter_types`.
    """
    shape = one_message(module, _HOST_PROGRAM_SHAPE, "signature")
    parameters = messages(shape, _PARAMETERS)
    tupled = len(parameters) == 1 and _is_tuple(parameters[0])
    parts = _elements(parameters[0]) if tupled else parameters
    return tuple(map(_tensor_type, parts)), tupled


def donated_parameters(module: Content) -> frozenset[int]:
    """Returns the numbers of the parameters that a launch consumes: those aliased to results.

    If the only parameter is a tuple they are the numbers of its elements. The module is optimised:
    a buffer donor that remains in it is one that the compiler used for no result, and it is not
    consumed.
    """
    found: set[int] = set()
    for part in messages(module, _ALIASES):
        for entry in messages(part, _ENTRIES):
            # protobuf omits a number that is 0.
            found.update(integers(entry, _ALIAS_INDEX) or integers(entry, _ALIAS_PARAMETER) or [0])
    return frozenset(found)


def output_shardings(module: Content) -> list[bytes] | None:
    """Returns a serialised ``xla.OpSharding`` for each result of a partitioned program.

    Without results, the sharding of their empty tuple. None for a program that is not partitioned.
    Raises `ValueError` for another message.
    """
    stated = messages(module, _OUTPUT_SHARDING)
    if not stated:
        return None
    whole = one_message(module, _OUTPUT_SHARDING, "sharding of results")
    parts = (
        messages(whole, _SHARDINGS) if integers(whole, _SHARDING_TYPE) == [_OF_TUPLE] else [whole]
    )
    return [*map(bytes, parts)]


def parameter_shardings(module: Content) -> list[bytes] | None:
    """Returns an ``xla.OpSharding`` for each parameter of a partitioned program.

    None for a program that states no shardings of its parameters.
    """
    stated = [*map(bytes, messages(module, _PARAMETER_SHARDINGS))]
    if stated or (messages(module, _OUTPUT_SHARDING) and not parameter_types(module)):
        return stated
    return None


def parameter_types(module: Content) -> tuple[TensorType, ...]:
    """Returns the types of the parameters.

    Raises `ValueError` for another message, and `KeyError` for parameters that are no arrays.
    """
    shape = one_message(module, _HOST_PROGRAM_SHAPE, "signature")
    return tuple(_tensor_type(parameter) for parameter in messages(shape, _PARAMETERS))


def result_types(module: Content) -> tuple[TensorType, ...]:
    """Returns the types of the results on one device; raises as `parameter_types` does."""
    shape = one_message(module, _HOST_PROGRAM_SHAPE, "signature")
    result = one_message(shape, _RESULT, "result")
    return tuple(map(_tensor_type, _elements(result)))


def shape_proto(tensor: TensorType) -> bytes:
    """Returns the ``ShapeProto`` of a row-major array of static shape.

    Raises `Unimplemented` for a dtype that XLA's programs do not have.
    """
    types = {name: value for value, name in PRIMITIVE_TYPES.items()}
    if (name := tensor.dtype.name) not in types:
        raise Unimplemented(f"XLA has no element type for the dtype {name}")
    rank = len(tensor.shape)
    layout = _encode_packed(_MINOR_TO_MAJOR, reversed(range(rank))) + integer(_TAIL_ALIGNMENT, 1)
    return (
        integer(_ELEMENT_TYPE, types[name])
        + _encode_packed(_DIMENSIONS, tensor.shape)
        + message(_LAYOUT, layout)
        + _encode_packed(_IS_DYNAMIC, [0] * rank)
    )


def _encode_packed(field: int, values: Iterable[int]) -> bytes:
    """Returns a packed field of integers; nothing without integers, as protobuf writes it."""
    content = b"".join(map(varint, values))
    return message(field, content) if content else b""


def parameter_layouts(module: Content) -> tuple[Layout, ...]:
    """Returns the layouts of the parameters; for a tuple parameter, of its elements."""
    shape = one_message(module, _HOST_PROGRAM_SHAPE, "signature")
    return tuple(_layout(s) for p in messages(shape, _PARAMETERS) for s in _elements(p))


def output_layouts(module: Content) -> tuple[Layout, ...]:
    """Returns the layouts of the results."""
    shape = one_message(module, _HOST_PROGRAM_SHAPE, "signature")
    result = one_message(shape, _RESULT, "result")
    return tuple(_layout(s) for s in _elements(result))


def _elements(shape: memoryview) -> Sequence[memoryview]:
    return messages(shape, _TUPLE_SHAPES) if _is_tuple(shape) else [shape]


def _is_tuple(shape: Content) -> bool:
    return last_integer(shape, _ELEMENT_TYPE) == _TUPLE


def _layout(shape: memoryview) -> Layout:
    stated = messages(shape, _LAYOUT)
    if not stated:
        return Layout.row_major(len(integers(shape, _DIMENSIONS)))
    layout = one_message(shape, _LAYOUT, "layout")
    tiles = tuple(tuple(integers(tile, _TILE_DIMENSIONS)) for tile in messages(layout, _TILES))
    order = tuple(reversed(integers(layout, _MINOR_TO_MAJOR)))
    rank = len(integers(shape, _DIMENSIONS))
    if sorted(order) != [*range(rank)]:
        raise ValueError(f"a layout has the order {order} for {rank} dimensions")
    return Layout(order, tiles, last_integer(layout, _ELEMENT_BITS))


def _tensor_type(shape: memoryview) -> TensorType:
    name = PRIMITIVE_TYPES[last_integer(shape, _ELEMENT_TYPE)]
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    sizes = tuple(integers(shape, _DIMENSIONS))
    if max(sizes, default=0) > _MAX_SIZE:
        raise ValueError(f"a shape has the dimensions {sizes}")
    return TensorType(sizes, dtype)


TYPE, DIMENSIONS, DEVICES, COPIES_LAST, LAST_DIMENSIONS = 1, 3, 4, 6, 8
IOTA_SHAPE, IOTA_ORDER = 9, 10

REPLICATED, OTHER, UNREDUCED = 0, 3, 6
"""Values of ``TYPE``; ``UNREDUCED``: each device has a term of a sum."""

WHOLE = b""
"""The message of a replicated array."""


def write_tiles(parts: Sequence[int], devices: Sequence[int], terms: int = 1) -> bytes:
    """Returns the message of an array divided into ``parts`` equal parts along each dimension.

    ``devices`` has the number of the device of each part in row-major order. Devices with the same
    part are adjacent; if each part has ``terms`` of a sum, devices with the same term are.
    """
    count = math.prod(parts) * terms
    if count == 1:
        return WHOLE
    copies = len(devices) // count
    sizes = [*parts, *[terms] * (terms > 1), *[copies] * (copies > 1)]
    last = [UNREDUCED, *[REPLICATED] * (copies > 1)] if terms > 1 else []
    return b"".join(
        (
            integer(TYPE, OTHER),
            message(DIMENSIONS, b"".join(map(varint, sizes))),
            message(DEVICES, b"".join(map(varint, devices))),
            integer(COPIES_LAST, 1) if copies > 1 and not last else b"",
            message(LAST_DIMENSIONS, b"".join(map(varint, last))) if last else b"",
        )
    )
