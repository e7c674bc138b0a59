"""`ManualAxisType`: how devices along Manual axes of a mesh differ in a value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache

from plugrt.errors import ArgumentError, ArgumentTypeError
from plugrt.execution.shardings.abstract_mesh import AbstractMesh
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.shardings.partition_spec import AxisName, Entry, PartitionSpec

Axes = frozenset[AxisName]
NO_AXES: Axes = frozenset()


@dataclass(frozen=True, kw_only=True)
class ManualAxisType:
    """How devices along the Manual axes of a mesh differ in a value within `plugrt.shard_map`.

    ``varying`` names the axes along which devices may have different values, ``unreduced`` those
    along which each has a term of a sum, ``reduced`` those along which all are equal and a gradient
    would be such a sum. Along the other axes all are equal: `invarying`. As
    ``jax.sharding.ManualAxisType``. Raises `ArgumentTypeError` for other values than sets of names,
    and `ArgumentError` for an axis that is varying and in another set.
    """

    varying: Axes = NO_AXES
    unreduced: Axes = NO_AXES
    reduced: Axes = NO_AXES

    def __post_init__(self) -> None:
        for name in ("varying", "unreduced", "reduced"):
            axes = getattr(self, name)
            if not isinstance(axes, Set):  # pmap's axes may have names that are no strings
                raise ArgumentTypeError(
                    f"ManualAxisType's {name} is a set of names of axes; got {axes!r:.60}"
                )
            object.__setattr__(self, name, frozenset(axes))
        for name in ("unreduced", "reduced"):
            if both := self.varying & getattr(self, name):
                raise ArgumentError(f"varying and {name} have common axes: {sorted(both)}")

    @property
    def named(self) -> Axes:
        """The axes in any of the three sets."""
        return self.varying | self.unreduced | self.reduced

    def invarying(self, mesh: AbstractMesh) -> Axes:
        """Returns the Manual axes of a mesh along which all devices have equal values."""
        return frozenset(mesh.manual_axes) - self.named

    def state(self, axis: AxisName) -> str:
        """Returns the state along an axis: 'varying', 'unreduced', 'reduced' or 'invarying'."""
        for name in ("varying", "unreduced", "reduced"):
            if axis in getattr(self, name):
                return name
        return "invarying"

    def moved(self, axes: Iterable[AxisName], state: str) -> ManualAxisType:
        """Returns the type with another state along some axes."""
        left = {n: getattr(self, n).difference(axes) for n in ("varying", "unreduced", "reduced")}
        if state != "invarying":
            left[state] = left[state].union(axes)
        return ManualAxisType(**left)


NO_MAT = ManualAxisType()


class PartSharding(NamedSharding):
    """The sharding in the type of one device's part: over Explicit axes, with ``mat``."""

    __slots__ = ("mat", "only_varies")

    def __init__(self, mesh: AbstractMesh, spec: PartitionSpec, mat: ManualAxisType) -> None:
        super().__init__(mesh, spec)
        self.mat = mat
        self._hash = hash((self._hash, mat))
        divided = spec.axis_names or spec.unreduced or spec.reduced
        self.only_varies = not (divided or mat.unreduced or mat.reduced)
        """Whether it has ``varying`` axes, and no others."""

    def __eq__(self, other: object) -> bool:
        return mat_of(other) == self.mat and super().__eq__(other) is True

    def __hash__(self) -> int:
        return self._hash


def mat_of(sharding: object) -> ManualAxisType:
    """Returns the `ManualAxisType` in the type of a value."""
    return sharding.mat if type(sharding) is PartSharding else NO_MAT


@lru_cache(maxsize=4096)
def with_mat(sharding: NamedSharding, mat: ManualAxisType) -> NamedSharding:
    """Returns the sharding in the type of a value, with another `ManualAxisType`."""
    if mat == NO_MAT:
        return NamedSharding(sharding.mesh, sharding.spec)
    return PartSharding(sharding.mesh, sharding.spec, mat)


def write_type(
    shape: Sequence[int],
    spec: Iterable[Entry],
    unreduced: Set[str] = frozenset(),
    reduced: Set[str] = frozenset(),
    varying: Set[str] = frozenset(),
) -> str:
    """Returns a shape with its axes, such as ``[8@x,2]{U:y}``."""
    sums = write_states(unreduced, reduced, varying)
    return (
        "["
        + ",".join(
            f"{n}@{'(' + ','.join(entry) + ')' if isinstance(entry, tuple) else entry}"
            if entry
            else f"{n}"
            for n, entry in zip(shape, spec, strict=True)
        )
        + "]"
        + sums
    )


def write_states(unreduced: Set[str], reduced: Set[str], varying: Set[str]) -> str:
    """Returns the axes of a type that divide no dimension, such as ``{V:x, U:y}``."""
    kinds = (("V", varying), ("U", unreduced), ("R", reduced))
    named = [f"{kind}:{','.join(sorted(axes))}" for kind, axes in kinds if axes]
    return f"{{{', '.join(named)}}}" if named else ""
