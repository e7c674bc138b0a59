"""`PartitionSpec`: which axes of a mesh each dimension of an array is divided over."""

from __future__ import annotations

from collections.abc import Iterator, Set
from enum import Enum, auto
from typing import Any, ClassVar, Literal, overload

from plugrt.errors import ArgumentTypeError, InvalidArgument, Unimplemented


class _Unconstrained(Enum):
    """`PartitionSpec.UNCONSTRAINED`: the compiler decides over a dimension."""

    UNCONSTRAINED = auto()

    def __repr__(self) -> str:
        return "UNCONSTRAINED"


AxisName = str
"""What an axis of a mesh may be called."""
Entry = AxisName | tuple[AxisName, ...] | _Unconstrained | None
"""What a spec says of one dimension."""


class PartitionSpec:
    """For each dimension of an array the axis of a mesh that it is divided over.

    An entry is the name of an axis, a tuple of several (the first varies slowest), None for a
    dimension that is not divided, or `UNCONSTRAINED`, where the compiler decides; dimensions
    beyond the last entry are not divided. It is immutable, hashable, and can be pickled; as
    ``jax.sharding.PartitionSpec``, two specs are equal if they have the same entries, so
    ``P("x")`` and ``P("x", None)`` differ, and mean the same. Raises `ArgumentTypeError` for what
    names no axis, `InvalidArgument` for an axis that is named twice, and `Unimplemented` for axes
    in ``unreduced`` and ``reduced``.

    >>> P = plugrt.sharding.PartitionSpec
    >>> P("x", None, ("y", "z"))
    PartitionSpec('x', None, ('y', 'z'))
    """

    __slots__ = ("_entries",)

    UNCONSTRAINED: ClassVar[Literal[_Unconstrained.UNCONSTRAINED]] = _Unconstrained.UNCONSTRAINED

    def __init__(
        self, *entries: object, unreduced: Set[str] = frozenset(), reduced: Set[str] = frozenset()
    ) -> None:
        for what, axes in (("unreduced", unreduced), ("reduced", reduced)):
            if not isinstance(axes, Set):
                raise ArgumentTypeError(
                    f"PartitionSpec's {what} is a set of names of axes; got {axes!r:.60}"
                )
            if axes:
                raise Unimplemented(
                    f"PartitionSpec has {what}={axes!r:.60}, which in JAX is for Explicit axes; "
                    "plugrt has none. Reduce within shard_map, by plugrt.lax.psum"
                )
        self._entries: tuple[Entry, ...] = tuple(map(_read_entry, entries))
        names = self.axis_names
        twice = sorted({repr(name) for name in names if names.count(name) > 1})
        if twice:
            raise InvalidArgument(
                f"{self!r} names the axis {', '.join(twice)} twice; an axis divides one dimension"
            )

    @property
    def axis_names(self) -> tuple[AxisName, ...]:
        """The axes that it divides over, in the order of the dimensions."""
        return tuple(name for i in range(len(self)) for name in self.axes_of(i))

    def axes_of(self, dimension: int) -> tuple[AxisName, ...]:
        """Returns the axes that a dimension is divided over; none beyond the last entry."""
        entry = self._entries[dimension] if dimension < len(self._entries) else None
        if entry is None or isinstance(entry, _Unconstrained):
            return ()
        return entry if isinstance(entry, tuple) else (entry,)

    def is_unconstrained(self, dimension: int) -> bool:
        """Whether the compiler decides over a dimension."""
        return dimension < len(self) and isinstance(self._entries[dimension], _Unconstrained)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Entry, ...]: ...
    def __getitem__(self, index: int | slice) -> Entry | tuple[Entry, ...]:
        return self._entries[index]

    def __add__(self, other: object) -> PartitionSpec:
        if not isinstance(other, PartitionSpec | tuple):
            return NotImplemented
        return PartitionSpec(*self, *other)

    def __radd__(self, other: object) -> PartitionSpec:
        if not isinstance(other, tuple):
            return NotImplemented
        return PartitionSpec(*other, *self)

    def index(self, entry: object) -> int:
        """Returns the first dimension with this entry; raises ValueError where there is none."""
        return self._entries.index(_read_entry(entry))

    def count(self, entry: object) -> int:
        """Returns the number of dimensions with this entry."""
        return self._entries.count(_read_entry(entry))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartitionSpec):
            return NotImplemented
        return self._entries == other._entries

    def __hash__(self) -> int:
        return hash((PartitionSpec, self._entries))

    def __reduce__(self) -> Any:
        return PartitionSpec, self._entries

    def __repr__(self) -> str:
        return f"PartitionSpec({', '.join(map(repr, self._entries))})"


def _read_entry(entry: object) -> Entry:
    """Returns an entry as it is kept: a tuple of one axis is that axis, an empty one None."""
    if isinstance(entry, tuple | list):
        names = tuple(map(_read_name, entry))
        return None if not names else names[0] if len(names) == 1 else names
    if entry is None or isinstance(entry, _Unconstrained):
        return entry
    return _read_name(entry)


def _read_name(name: object) -> AxisName:
    if isinstance(name, str):
        return name
    raise ArgumentTypeError(
        "PartitionSpec takes, for each dimension, the name of a mesh's axis, a tuple of names, "
        f"None or PartitionSpec.UNCONSTRAINED; got {type(name).__name__} {name!r:.100}"
    )
