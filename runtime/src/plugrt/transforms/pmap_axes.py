"""Mapped axes of `pmap`: `AxisPrefix`, the shapes that result from the axes, and checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias

from plugrt.array_api.manipulation import expand_dims, squeeze
from plugrt.errors import (
    ArgumentTypeError,
    AxisError,
    ShapeError,
    StructureError,
)
from plugrt.execution.arrays.array import Array
from plugrt.execution.launches.flat_calls import FlatCall
from plugrt.execution.trees import pytrees
from plugrt.execution.trees.tree_prefixes import spread_prefix
from plugrt.interface import TensorType
from plugrt.settings.declarations import config

Axis = int | None


class DataclassNode(Protocol):
    """A dataclass that `plugrt.tree.register_dataclass` made a container."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


AxisTree: TypeAlias = (
    "Axis | tuple[AxisTree, ...] | list[Any] | Mapping[Any, AxisTree] | DataclassNode"
)
"""A pytree of axes. ``Sequence`` is not used: a str is a sequence of str."""


class AxisPrefix:
    """``in_axes`` or ``out_axes``: a pytree prefix of integers and None, hashable."""

    __slots__ = ("_key", "tree", "what")

    def __init__(self, axes: Any, what: str) -> None:
        """Raises `TypeError` (as JAX) for a leaf that is neither an integer nor None."""
        self.what = what
        self.tree = axes
        leaves, spec = pytrees.flatten_with_none(axes)
        for leaf in leaves:
            if leaf is not None and type(leaf) is not int:
                raise ArgumentTypeError(
                    f"pmap {what} must be an int, None, or (nested) container with those types as "
                    f"leaves; got {axes!r}, which holds {leaf!r}"
                )
        self._key = (tuple(leaves), spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AxisPrefix) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def broadcast(self, full: object, of: str) -> list[Axis]:
        """Returns the axis of each leaf of ``full``; `StructureError` if this is no prefix."""
        return spread_prefix(self.tree, full, f"pmap {self.what}", of)


def call_axes(prefix: AxisPrefix, bound: FlatCall, title: str) -> list[Axis]:
    """Returns the axis of each flat argument of a call; keywords are mapped over axis 0.

    A tuple of axes has one entry for each positional argument, static ones included.
    """
    args = bound.dynamic[0]
    static = {where for where, _ in bound.statics if isinstance(where, int)}
    axes = prefix
    if type(prefix.tree) is tuple:
        if len(prefix.tree) != len(args) + len(static):
            raise StructureError(
                f"pmap in_axes={prefix.tree!r} has {len(prefix.tree)} entries; {title!r} was "
                f"called with {len(args) + len(static)} positional arguments (keyword arguments "
                "have none: they are mapped over their first axis)"
            )
        dynamic = tuple(axis for i, axis in enumerate(prefix.tree) if i not in static)
        axes = AxisPrefix(dynamic, prefix.what)
    flat = axes.broadcast(args, f"the positional arguments of {title!r}")
    return [*flat, *[0] * (len(bound.leaves) - len(flat))]


def mapped_axis(axis: int, shape: Sequence[int], name: str) -> int:
    """Returns the axis counted from the front; `AxisError` if an argument has no such axis."""
    rank = len(shape)
    if not -rank <= axis < rank:
        raise AxisError(
            f"pmap maps {name} over axis {axis}, but its shape is {tuple(shape)}; pass "
            "in_axes=None for arguments that every replica gets whole"
        )
    return axis % rank


def mapped_size(
    axes: Sequence[Axis],
    types: Sequence[TensorType],
    names: Sequence[str],
    title: str,
    stated: int | None,
) -> int:
    """Returns the size of the mapped axis; `ShapeError` names the arguments that disagree."""
    sizes: dict[int, int] = {}
    for i, axis in enumerate(axes):
        if axis is not None:
            sizes.setdefault(types[i].shape[axis], i)
    if len(sizes) > 1:
        lines = "".join(
            f"\n  {names[i]}: {types[i]} has size {size} along axis {axes[i]}"
            for size, i in sizes.items()
        )
        raise ShapeError(
            f"pmap of {title!r} got arguments of different sizes along their mapped axes:{lines}"
        )
    if not sizes and stated is None:
        raise ShapeError(
            f"pmap of {title!r} got no argument with a mapped axis, so that the number of replicas "
            "is unknown; map an argument (in_axes) or state axis_size"
        )
    size = next(iter(sizes)) if sizes else stated
    assert size is not None
    if stated is not None and stated != size:
        raise ShapeError(
            f"pmap of {title!r} was made with axis_size={stated}; the mapped axis of "
            f"{names[sizes[size]]} has size {size}"
        )
    if size == 0:
        raise ShapeError(f"the mapped axis of {names[sizes[0]]} has size 0: there is no replica")
    return size


def replica_shape(axis: Axis, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape of one replica's slice of an array that is mapped over ``axis``."""
    return shape if axis is None else shape[:axis] + shape[axis + 1 :]


def part_shape(axis: Axis, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape of one device's part of an array that is mapped over ``axis``."""
    return shape if axis is None else (*shape[:axis], 1, *shape[axis + 1 :])


def output_axis(axis: Axis, part: TensorType, where: str) -> Axis:
    """Returns the position of the mapped axis in an output, counted from the front.

    ``part`` is the type of one replica's output. Raises `ShapeError` for an axis out of range.
    """
    if axis is None:
        return None
    rank = len(part.shape) + 1
    if not -rank <= axis < rank:
        raise ShapeError(
            f"pmap puts the mapped axis of {where} at {axis} (out_axes); each replica's is {part}, "
            f"so that it can be at {-rank} to {rank - 1}"
        )
    return axis % rank


def insert_axis(x: Array, axis: int = 0) -> Array:
    """Returns an array with one more axis, of size one; without checks for NaN and infinities."""
    with config.override(debug_nans=False, debug_infs=False):
        longer: Array = expand_dims(x, axis=axis)
    return longer


def drop_axis(x: Array, axis: int) -> Array:
    """Returns an array without an axis of size one; without checks for NaN and infinities."""
    with config.override(debug_nans=False, debug_infs=False):
        shorter: Array = squeeze(x, axis=axis)
    return shorter
