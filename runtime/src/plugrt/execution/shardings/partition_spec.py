"""`PartitionSpec`: the mesh axes that divide each dimension of an array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from enum import Enum, auto
from typing import Any, ClassVar, Literal, overload

from plugrt.errors import ArgumentTypeError, InvalidArgument


class _Unconstrained(Enum):
    """`PartitionSpec.UNCONSTRAINED`: the compiler decides how a dimension is divided."""

    UNCONSTRAINED = auto()

    def __repr__(self) -> str:
        return "UNCONSTRAINED"


AxisName = str
"""The name of a mesh's axis."""
Entry = AxisName | tuple[AxisName, ...] | _Unconstrained | None
"""The entry of a spec for one dimension."""


class PartitionSpec:
    """For each dimension of an array, the mesh axis over which it is divided.

    An entry is the name of an axis, a tuple of several (the first varies slowest), None for a
    dimension that is not divided, or `UNCONSTRAINED`, for which the compiler decides; dimensions
    beyond the last entry are not divided. It is immutable, hashable, and can be pickled; as
    ``jax.sharding.PartitionSpec``, two specs are equal if they have the same entries, so ``P("x")``
    and ``P("x", None)`` differ although they mean the same. ``unreduced`` is a set of Explicit
    axes: the devices along them have terms, and the array is their sum. ``reduced`` is a set of
    axes along which the devices have equal values, whose gradient in JAX would be unreduced. Raises
    `ArgumentTypeError` for an entry that names no axis, and `InvalidArgument` for an axis in more
    than one of the entries, ``unreduced`` and ``reduced``; an axis in two entries is refused with a
    mesh.

    >>> P = plugrt.sharding.PartitionSpec
    >>> P("x", None, ("y", "z"))
    P('x', None, ('y', 'z'))
    """

    __slots__ = ("_entries", "_reduced", "_unreduced")

    UNCONSTRAINED: ClassVar[Literal[_Unconstrained.UNCONSTRAINED]] = _Unconstrained.UNCONSTRAINED

    def __init__(
        self, *entries: object, unreduced: Set[str] = frozenset(), reduced: Set[str] = frozenset()
    ) -> None:
        for what, axes in (("unreduced", unreduced), ("reduced", reduced)):
            if not isinstance(axes, Set):
                raise ArgumentTypeError(
                    f"PartitionSpec's {what} is a set of names of axes; got {axes!r:.60}"
                )
        self._unreduced = frozenset(map(_read_name, unreduced))
        self._reduced = frozenset(map(_read_name, reduced))
        self._entries: tuple[Entry, ...] = tuple(map(_read_entry, entries))
        self._require_once((*{*self.axis_names}, *self._unreduced, *self._reduced))

    def require_different(self) -> None:
        """Raises `InvalidArgument` if an axis divides two dimensions."""
        self._require_once(self.axis_names)

    def _require_once(self, names: Sequence[AxisName]) -> None:
        twice = sorted({repr(name) for name in names if names.count(name) > 1})
        if twice:
            raise InvalidArgument(
                f"{self!r} names the axis {', '.join(twice)} twice; an axis divides one dimension"
            )

    def __init_subclass__(cls) -> None:
        raise ArgumentTypeError("PartitionSpec has no subclasses: equal specs mean the same")

    @property
    def partitions(self) -> tuple[Entry, ...]:
        """The entries."""
        return self._entries

    @property
    def unreduced(self) -> frozenset[AxisName]:
        """The axes along which each device has a term of a sum."""
        return self._unreduced

    @property
    def reduced(self) -> frozenset[AxisName]:
        """The axes along which the gradient is a term of a sum."""
        return self._reduced

    def update(self, **changes: Any) -> PartitionSpec:
        """Returns the spec with other ``partitions``, ``unreduced`` or ``reduced``."""
        if unknown := changes.keys() - {"partitions", "unreduced", "reduced"}:
            raise ArgumentTypeError(f"PartitionSpec.update has no parameter {min(unknown)!r}")
        kept = {"unreduced": self._unreduced, "reduced": self._reduced, **changes}
        return PartitionSpec(*kept.pop("partitions", self._entries), **kept)

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
        """Whether the compiler decides how a dimension is divided."""
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
        if isinstance(other, tuple):
            self._require_entries_alone("a tuple is added")
            return PartitionSpec(*self._entries, *other)
        return PartitionSpec(
            *self._entries,
            *other._entries,
            unreduced=self._unreduced | other._unreduced,
            reduced=self._reduced | other._reduced,
        )

    def __radd__(self, other: object) -> PartitionSpec:
        if not isinstance(other, tuple):
            return NotImplemented
        self._require_entries_alone("it is added to a tuple")
        return PartitionSpec(*other, *self)

    def _require_entries_alone(self, what: str) -> None:
        if self._unreduced or self._reduced:
            raise ArgumentTypeError(
                f"{what}, and {self!r} has unreduced or reduced axes: add a PartitionSpec"
            )

    def index(self, entry: object) -> int:
        """Returns the first dimension with this entry; raises ValueError if there is none."""
        return self._entries.index(_read_entry(entry))

    def count(self, entry: object) -> int:
        """Returns the number of dimensions with this entry."""
        return self._entries.count(_read_entry(entry))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartitionSpec):
            return NotImplemented
        return self._parts == other._parts

    def __hash__(self) -> int:
        return hash((PartitionSpec, self._parts))

    @property
    def _parts(self) -> tuple[Any, ...]:
        return self._entries, self._unreduced, self._reduced

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, self._parts

    def __repr__(self) -> str:
        shown = [*map(repr, self._entries)]
        for what, axes in (("unreduced", self._unreduced), ("reduced", self._reduced)):
            if axes:
                shown.append(f"{what}={{{', '.join(map(repr, sorted(axes)))}}}")
        end = "," if len(shown) == len(self._entries) == 1 else ""  # as in JAX
        return f"P({', '.join(shown)}{end})"


def _rebuild(entries: tuple[Entry, ...], unreduced: Set[str], reduced: Set[str]) -> PartitionSpec:
    return PartitionSpec(*entries, unreduced=unreduced, reduced=reduced)


def _read_entry(entry: object) -> Entry:
    """Returns the canonical form of an entry: a tuple of one axis is that axis, an empty one
    None.
    """
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
