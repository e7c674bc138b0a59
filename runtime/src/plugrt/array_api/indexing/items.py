"""The items of a parsed key, one for each axis or new axis, and the resulting shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plugrt.array_api.elementwise.operands import broadcast_shapes
from plugrt.errors import InvalidIndex

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class New:
    """``None``: a new axis of size 1."""


@dataclass(frozen=True, slots=True)
class Gap:
    """``...`` that covers no axis, but separates the arrays on its two sides."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The elements ``start + i * step`` of an axis, for i below ``count``."""

    start: int
    count: int
    step: int


@dataclass(frozen=True, slots=True)
class Window:
    """``count`` elements of an axis, ``step`` apart; the next operand is the lowest position.

    With a negative step the element of the lowest position comes last.
    """

    count: int
    step: int

    @property
    def extent(self) -> int:
        """The number of elements of the axis from the first to the last one."""
        return (self.count - 1) * abs(self.step) + 1

    @property
    def inside(self) -> Slice:
        """The elements that it selects within its extent."""
        return Slice(0 if self.step > 0 else self.extent - 1, self.count, self.step)


@dataclass(frozen=True, slots=True)
class KnownPosition:
    """One position, known when the program is made and within bounds."""

    position: int


@dataclass(frozen=True, slots=True)
class Scalar:
    """One position, the next operand. ``safe`` means that it is known to be within bounds."""

    safe: bool


@dataclass(frozen=True, slots=True)
class Indices:
    """An array of positions along an axis, the next operand."""


@dataclass(frozen=True, slots=True)
class Unravelled(Indices):
    """The positions along axis ``axis`` of the true elements of a boolean array of ``shape``.

    The operand, one for all of its axes, holds the positions in the flattened array.
    """

    shape: Shape
    axis: int


@dataclass(frozen=True, slots=True)
class Flag:
    """A single boolean: a new axis of size ``count``, 1 or 0, that broadcasts like arrays."""

    count: int


Item = New | Gap | Slice | Window | KnownPosition | Scalar | Indices | Flag


Spec = tuple[Item, ...]
"""Items in order; each but `New`, `Gap` and `Flag` uses one axis."""


TAKE_AXIS = (Slice, Window, KnownPosition, Scalar, Indices)


_ADVANCED = (KnownPosition, Scalar, Indices, Flag)
"""Items that broadcast together if there is an array among them (NumPy's rule)."""


def has_operand(item: Item) -> bool:
    """Whether an item uses up an operand; items that share one after the first do not."""
    if isinstance(item, Unravelled):
        return item.axis == 0
    return isinstance(item, Scalar | Window | Indices)


def is_advanced(spec: Spec) -> bool:
    """Whether there is an array among the items, so that a gather is needed."""
    return any(isinstance(item, Indices | Flag) for item in spec)


def operand_shapes(spec: Spec, operands: Sequence[Any]) -> list[Shape]:
    """Returns the shapes of the operands that broadcast together, in the order of the items."""
    pending = iter(operands)
    shapes: list[Shape] = []
    for item in spec:
        if isinstance(item, Flag):
            shapes.append((item.count,))
        elif isinstance(item, Unravelled) and item.axis:
            shapes.append(shapes[-1])
        elif isinstance(item, Scalar | Indices):
            shapes.append(tuple(next(pending).shape))
    return shapes


def block_shape(spec: Spec, operands: Sequence[object]) -> Shape:
    """Returns the common shape of the arrays in a key; raises `InvalidIndex` without one."""
    shapes = operand_shapes(spec, operands)
    common = broadcast_shapes(tuple(shapes))
    if common is None:
        raise InvalidIndex(
            f"arrays in an index broadcast together, and those of shapes "
            f"{', '.join(map(str, shapes))} do not"
        )
    return common


def result_layout(spec: Spec, block: Shape) -> list[tuple[Item | None, int]]:
    """Returns the axes of ``x[key]``: the item that each comes from, None for ``block``'s.

    The axes of index arrays are at the arrays' place if these are adjacent, else first (NumPy's
    rule).
    """
    advanced = [i for i, item in enumerate(spec) if isinstance(item, _ADVANCED)]
    rest = [(i, item) for i, item in enumerate(spec) if isinstance(item, New | Slice | Window)]
    axes: list[tuple[Item | None, int]] = [
        (item, 1 if isinstance(item, New) else item.count) for _, item in rest
    ]
    if not is_advanced(spec):
        return axes
    together = advanced[-1] - advanced[0] == len(advanced) - 1
    at = sum(i < advanced[0] for i, _ in rest) if together else 0
    return [*axes[:at], *[(None, n) for n in block], *axes[at:]]


def items_with_axis(spec: Spec) -> list[Item]:
    """Returns the items that use an axis: one for each axis of the array."""
    return [item for item in spec if isinstance(item, TAKE_AXIS)]
