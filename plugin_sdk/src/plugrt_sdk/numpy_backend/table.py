"""Which module has the lowering of each operation, and which operations are refused and why."""

from __future__ import annotations

from collections import ChainMap
from typing import Any

from plugrt_sdk.numpy_backend import (
    binary,
    bits,
    contraction,
    control_flow,
    conversion,
    gathering,
    reduction,
    shapes,
    slicing,
    sorting,
    unary,
    windows,
)
from plugrt_sdk.numpy_backend.operation import Lowering, Operation

CHAPTERS: tuple[Any, ...] = (
    unary,
    binary,
    bits,
    conversion,
    shapes,
    slicing,
    gathering,
    contraction,
    reduction,
    windows,
    sorting,
    control_flow,
)
"""The modules with lowerings, in the order of the documentation."""
OPERATIONS = ChainMap(*(chapter.OPERATIONS for chapter in CHAPTERS))
"""Operation name to lowering, for one device."""
JOINT: dict[str, Lowering] = {}
"""The operations that need several devices at once, whatever they hold."""
_JOINT_FORMS = ChainMap(JOINT, control_flow.JOINT_CONTROL)
TERMINATORS = frozenset({"func.return", "stablehlo.return", "sdy.return"})

REFUSED: dict[str, str] = {}
"""Operation name to the reason why it is refused."""

_SHAPELESS = {"stablehlo.broadcast_in_dim", "stablehlo.constant", "stablehlo.reshape"}
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


def lowering_of(op: Operation) -> Lowering:
    """Returns the lowering of an operation; raises `Unimplemented` where there is none."""
    lowering = OPERATIONS.get(op.name)
    if lowering is None:
        op.refuse(REFUSED.get(op.name, "there is no such operation in its table"))
    return lowering


def joint_lowering_of(op: Operation) -> Lowering:
    """Returns the joint lowering of an operation that exchanges data, or holds one that does."""
    lowering = _JOINT_FORMS.get(op.name)
    if lowering is None:
        op.refuse("it holds a collective")
    return lowering
