"""The module with the lowering of each operation, and the refused operations with reasons."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from typing import Any

from plugrt_numpy import partitions, shapes
from plugrt_numpy.operation import Lowering, Operation
from plugrt_numpy.operations import (
    binary,
    bits,
    collectives,
    contraction,
    control_flow,
    conversion,
    convolution,
    custom_calls,
    gathering,
    linear_algebra,
    normalization,
    random_bits,
    reduction,
    slicing,
    sorting,
    unary,
    windows,
)

CHAPTERS: tuple[Any, ...] = (
    unary,
    binary,
    bits,
    conversion,
    shapes,
    slicing,
    gathering,
    contraction,
    convolution,
    reduction,
    windows,
    sorting,
    normalization,
    linear_algebra,
    random_bits,
    control_flow,
    custom_calls,
    partitions,
)
"""The modules with lowerings, in the order of the documentation."""
OPERATIONS: Mapping[str, Lowering] = ChainMap(*(chapter.OPERATIONS for chapter in CHAPTERS))
"""Operation name to lowering, for one device."""
JOINT: dict[str, Lowering] = collectives.JOINT
"""The operations that need several devices at once, whatever their regions."""
_JOINT_FORMS = ChainMap(JOINT, control_flow.JOINT_CONTROL, partitions.JOINT_PARTS)
TERMINATORS = frozenset({"func.return", "stablehlo.return", "sdy.return"})

_DEPRECATED = "the specification has removed or deprecated it"
_NO_HOST = "a launch cannot exchange data with the host while it runs"
_QUANTISED = "quantised types are not supported"
REFUSED: dict[str, str] = {
    "stablehlo.async_done": "asynchronous operations are not supported",
    "stablehlo.async_start": "asynchronous operations are not supported",
    "stablehlo.collective_reduce": "new in jaxlib 0.12, and not supported yet",
    "stablehlo.cross-replica-sum": _DEPRECATED,
    "stablehlo.einsum": _DEPRECATED,
    "stablehlo.infeed": _NO_HOST,
    "stablehlo.outfeed": _NO_HOST,
    "stablehlo.recv": _NO_HOST,
    "stablehlo.send": _NO_HOST,
    "stablehlo.set_dimension_size": "arrays of bounded dynamic size are not supported",
    "stablehlo.torch_index_select": _DEPRECATED,
    "stablehlo.unary_einsum": _DEPRECATED,
    "stablehlo.uniform_dequantize": _QUANTISED,
    "stablehlo.uniform_quantize": _QUANTISED,
}
"""Operation name to the reason why it is refused."""

_SHAPELESS = {
    "sdy.sharding_constraint",
    "stablehlo.broadcast_in_dim",
    "stablehlo.constant",
    "stablehlo.reshape",
}
ELEMENTWISE = frozenset(
    {*unary.OPERATIONS, *binary.OPERATIONS, *bits.OPERATIONS, *conversion.OPERATIONS, *_SHAPELESS}
)
"""The operations that, on scalars, can be run for the elements of an array at once."""
FOLDED = frozenset(
    {
        "stablehlo.broadcast_in_dim",
        "stablehlo.convert",
        "stablehlo.iota",
        "stablehlo.reshape",
        "stablehlo.transpose",
    }
)
"""The operations on constants that are run when a program is compiled."""


def find_lowering(op: Operation) -> Lowering:
    """Returns the lowering of an operation; raises `Unimplemented` without one."""
    lowering = OPERATIONS.get(op.name)
    if lowering is None:
        op.refuse(REFUSED.get(op.name, "there is no such operation in its table"))
    return lowering


def find_joint_lowering(op: Operation) -> Lowering:
    """Returns the joint lowering of an operation that exchanges data, or holds one that does."""
    lowering = _JOINT_FORMS.get(op.name)
    if lowering is None:
        op.refuse("it holds a collective")
    return lowering
