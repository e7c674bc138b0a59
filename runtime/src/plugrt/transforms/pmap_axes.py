"""Mapped axes of `pmap`: `AxisPrefix`, `ReplicaMapping`, and their checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias

from plugrt.errors import (
    ArgumentTypeError,
    AxisError,
    InvalidArgument,
    ShapeError,
    StructureError,
    Unimplemented,
)
from plugrt.execution import tree
from plugrt.execution.arguments import ParameterType
from plugrt.execution.placement import Launch
from plugrt.execution.sharding import PmapSharding
from plugrt.execution.signature import Signature, intern_signature
from plugrt.interface import Device, TensorType
from plugrt.tracing.trace_function import Staged
from plugrt.transforms.call_arguments import Bound

Axis = int | None


class DataclassNode(Protocol):
    """A dataclass that `plugrt.tree.register_dataclass` made a container."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


AxisTree: TypeAlias = (
    "Axis | tuple[AxisTree, ...] | list[Any] | Mapping[Any, AxisTree] | DataclassNode"
)
"""A pytree of axes. Not of sequences: a text is a sequence of texts."""


class AxisPrefix:
    """``in_axes`` or ``out_axes``: a pytree prefix of integers and None, hashable."""

    __slots__ = ("key", "tree", "what")

    def __init__(self, axes: Any, what: str) -> None:
        """Raises `TypeError` (as JAX) for a leaf that is neither an integer nor None."""
        self.what = what
        self.tree = axes
        leaves, spec = tree.flatten_with_none(axes)
        for leaf in leaves:
            if leaf is not None and type(leaf) is not int:
                raise ArgumentTypeError(
                    f"pmap {what} must be an int, None, or (nested) container with those types as "
                    f"leaves; got {axes!r}, which holds {leaf!r}"
                )
        self.key = (tuple(leaves), spec)

    def broadcast(self, full: Any, describe: Callable[[], str]) -> list[Axis]:
        """Returns the axis of each leaf of ``full``; `StructureError` if this is no prefix."""
        try:
            return tree.broadcast_prefix(self.tree, full)
        except ValueError as error:
            raise StructureError(
                f"pmap {self.what}={self.tree!r} is not a pytree prefix of {describe()}: {error}"
            ) from error


def call_axes(prefix: AxisPrefix, bound: Bound, title: str) -> list[Axis]:
    """Returns the axis of each flat argument of a call; keywords are mapped over their first.

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
    flat = axes.broadcast(args, lambda: f"the positional arguments of {title!r}")
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


def choose_devices(
    size: int, available: Sequence[Device], chosen: bool, title: str
) -> tuple[Device, ...]:
    """Returns a device for each replica; `InvalidArgument` says how many there are and are needed.

    ``chosen`` means that the caller listed ``available``: then the size must be their number.
    """
    if chosen and size != len(available):
        raise InvalidArgument(
            f"the mapped axis of pmap of {title!r} has size {size}, and devices= lists "
            f"{len(available)}; the two must be equal"
        )
    if size > len(available):
        platform = available[0].platform if available else "the backend"
        hint = "; JAX_NUM_CPU_DEVICES sets how many the cpu has" if platform == "cpu" else ""
        raise InvalidArgument(
            f"pmap of {title!r} needs {size} replicas, but {platform} has only {len(available)} "
            f"devices{hint}"
        )
    return tuple(available[:size])


def check_devices(devices: Sequence[Device]) -> tuple[Device, ...]:
    """Returns the devices that the caller listed; `InvalidArgument` if they are wrong."""
    chosen = tuple(devices)
    non_devices = [d for d in chosen if not isinstance(d, Device)]
    if non_devices or not chosen:
        raise InvalidArgument(
            f"pmap's devices must be some of plugrt.devices(); got {non_devices or 'none'}"
        )
    if len(set(chosen)) != len(chosen):
        raise InvalidArgument(f"pmap's devices name a device twice: {list(chosen)}")
    if len({d.client for d in chosen}) > 1:
        raise InvalidArgument(f"pmap's devices are of different backends: {list(chosen)}")
    if not all(d.is_addressable for d in chosen):
        raise Unimplemented(f"pmap over devices of other processes: {list(chosen)}")
    return chosen


def replica_shape(axis: Axis, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns one replica's part of a shape that is mapped over ``axis``."""
    return shape if axis is None else shape[:axis] + shape[axis + 1 :]


def whole_output(
    axis: Axis, part: TensorType, size: int, where: str
) -> tuple[Axis, tuple[int, ...]]:
    """Returns an output's axis counted from the front and its whole shape, of one replica's part.

    Raises `ShapeError` if the output has no such axis.
    """
    if axis is None:
        return None, part.shape
    rank = len(part.shape) + 1
    if not -rank <= axis < rank:
        raise ShapeError(
            f"pmap puts the mapped axis of {where} at {axis} (out_axes); each replica's is {part}, "
            f"so that it can be at {-rank} to {rank - 1}"
        )
    axis %= rank
    return axis, (*part.shape[:axis], size, *part.shape[axis:])


@dataclass(frozen=True, slots=True)
class ReplicaMapping:
    """How a call divides among devices: the mapped axis of each flat argument, and a device for
    each replica."""

    axes: tuple[Axis, ...]
    devices: tuple[Device, ...]

    @property
    def size(self) -> int:
        """The number of replicas."""
        return len(self.devices)

    @property
    def targets(self) -> list[PmapSharding]:
        """Where the program takes each flat argument."""
        made = {axis: PmapSharding(self.devices, axis) for axis in set(self.axes)}
        return [made[axis] for axis in self.axes]

    def types(self, types: Sequence[ParameterType]) -> list[ParameterType]:
        """Returns the types of one replica's arguments, where these are those of the whole ones."""
        return [
            (replica_shape(axis, shape), dtype, weak)
            for axis, (shape, dtype, weak) in zip(self.axes, types, strict=True)
        ]

    def launch(self, staged: Staged, out_axes: AxisPrefix) -> Launch:
        """Returns the launch of a traced replica on each device."""
        outputs = tuple(s.sharding for s in self.outputs(staged, out_axes))
        return Launch(self.size, 1, self.devices, tuple(self.targets), outputs, True, of_parts=True)

    def outputs(self, staged: Staged, out_axes: AxisPrefix) -> list[Signature]:
        """Returns the signature of each flat output.

        Raises `StructureError` (out_axes is no prefix) or `ShapeError` (an axis out of range).
        """
        count, title = len(staged.output_types), staged.plan.name
        full = tree.unflatten(staged.out_tree, range(count))
        axes = out_axes.broadcast(full, lambda: f"the results of {title!r}, {staged.out_tree}")
        result = []
        for i, (axis, part) in enumerate(zip(axes, staged.output_types, strict=True)):
            where = f"result {i} of {title!r}" if count > 1 else f"the result of {title!r}"
            at, shape = whole_output(axis, part, self.size, where)
            result.append(intern_signature(shape, part.dtype, PmapSharding(self.devices, at), True))
        return result
