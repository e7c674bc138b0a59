"""`settle_shardings`: reads back the shardings that the compiler chose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from plugrt.errors import InvalidReply, Unimplemented
from plugrt.execution.arrays.arguments import ParameterType
from plugrt.execution.placement.placement import Launch
from plugrt.execution.placement.plan import Plan
from plugrt.execution.shardings.abstract_mesh import AbstractMesh
from plugrt.execution.shardings.gspmd_sharding import GSPMDSharding
from plugrt.execution.shardings.named_sharding import NamedSharding, is_abstract
from plugrt.execution.shardings.op_sharding import read_op_sharding
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.shardings.positional_sharding import PositionalSharding
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.execution.shardings.tiling import Tiling
from plugrt.interface import Executable, TensorType
from plugrt.native.known_dtypes import buffer_type
from plugrt.wire.hlo_proto import WHOLE


class Unspecified(Sharding):
    """The sharding of an argument or a result, left to the compiler; it is read back."""

    __slots__ = ("_memory_kind",)

    def __init__(self, memory_kind: str | None = None) -> None:
        self._memory_kind = memory_kind

    @property
    def memory_kind(self) -> str | None:
        return self._memory_kind

    def with_memory_kind(self, kind: str) -> Unspecified:
        return Unspecified(kind)

    def name(self, found: Sharding, ndim: int) -> Sharding:
        """Converts the sharding ``found``, which the compiler states, to the form for users."""
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unspecified) and self._memory_kind == other._memory_kind

    def __hash__(self) -> int:
        return hash((Unspecified, self._memory_kind))

    def __repr__(self) -> str:
        return "UNSPECIFIED"


class PartlyChosen(Unspecified):
    """A result's sharding that a `NamedSharding` with open dimensions states in part."""

    __slots__ = ("is_open", "known")

    def __init__(self, known: NamedSharding, is_open: bool = False) -> None:
        super().__init__(known.memory_kind)
        self.known = known
        self.is_open = is_open
        """Whether the compiler may further divide all dimensions, also the stated ones."""

    def with_memory_kind(self, kind: str) -> PartlyChosen:
        return PartlyChosen(self.known.with_memory_kind(kind), self.is_open)

    def name(self, found: Sharding, ndim: int) -> Sharding:
        """Adds the known axes to the sharding ``found``, also axes of size one."""
        if not isinstance(found, NamedSharding) or found.mesh != self.known.mesh:
            return found
        own, spec = self.known.spec, found.spec
        entries = [tuple(dict.fromkeys((*own.axes_of(i), *spec.axes_of(i)))) for i in range(ndim)]
        if entries != [own.axes_of(i) for i in range(ndim)]:
            while entries and not entries[-1]:  # as JAX writes chosen specs
                entries.pop()
        named = found.mesh, spec.update(partitions=entries)
        sharding = NamedSharding(*named, memory_kind=found.memory_kind)
        return sharding if sharding.tiling(ndim) == found.tiling(ndim) else found

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, PartlyChosen)
            and self.known == other.known
            and self.is_open == other.is_open
        )

    def __hash__(self) -> int:
        return hash((PartlyChosen, self.known, self.is_open))

    def __repr__(self) -> str:
        return repr(self.known)


class Following(Unspecified):
    """The sharding of a result, which gets an argument's spec if that divides it equally."""

    __slots__ = ("model",)

    def __init__(self, model: NamedSharding, memory_kind: str | None = None) -> None:
        super().__init__(memory_kind)
        self.model = model

    def with_memory_kind(self, kind: str) -> Following:
        return Following(self.model, kind)

    def name(self, found: Sharding, ndim: int) -> Sharding:
        """Returns the argument's sharding if the sharding ``found`` is equivalent, else that."""
        if found.tiling(ndim) != self.model.tiling(ndim):
            return found
        return NamedSharding(self.model.mesh, self.model.spec, memory_kind=found.memory_kind)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Following)
            and self.model == other.model
            and self._memory_kind == other._memory_kind
        )

    def __hash__(self) -> int:
        return hash((Following, self.model, self._memory_kind))


UNSPECIFIED = Unspecified()
"""The compiler chooses the sharding, in the default memory."""


def is_chosen(sharding: Sharding) -> bool:
    """Whether the compiler chooses all or a part of a sharding."""
    return isinstance(sharding, Unspecified)


def known_part(sharding: Sharding) -> Sharding | None:
    """Returns the part of a sharding that is known before compilation; None if there is none."""
    if isinstance(sharding, PartlyChosen):
        return sharding.known
    return None if is_chosen(sharding) else sharding


def settle_shardings(
    launch: Launch,
    plan: Plan,
    types: Sequence[ParameterType],
    outputs: Sequence[TensorType],
    executable: Executable | None,
    *,
    runs: bool = True,
) -> Launch:
    """Returns the launch with the shardings that the compiler chose, for arguments and results.

    They are expressed over an argument's mesh if possible, and as `PositionalSharding` if an
    argument has that. Raises `Unimplemented`, for a launch that ``runs`` here, if a result is
    divided and the backend does not state the order of its parts.
    """
    if executable is None or not any(map(is_chosen, (*launch.in_shardings, *launch.out_shardings))):
        return launch
    place_of = {i: place for place, i in enumerate(plan.kept)}

    def settle(
        of: str,
        shardings: Sequence[Sharding],
        kinds: Sequence[tuple[tuple[int, ...], np.dtype[Any]]],
        places: Sequence[int],
        read: Callable[[Executable], list[bytes]],
    ) -> tuple[Sharding, ...]:
        if not any(map(is_chosen, shardings)):
            return tuple(shardings)
        found = read(executable)
        if runs and not found and of == "results" and len(launch.devices) > 1:
            _require_whole(executable, outputs, places)
        return tuple(
            _name_chosen(sharding, _stated(found, place, of), *kind, launch)
            if is_chosen(sharding)
            else sharding
            for sharding, kind, place in zip(shardings, kinds, places, strict=True)
        )

    return replace(
        launch,
        in_shardings=settle(
            "parameters",
            launch.in_shardings,
            [(shape, dtype) for shape, dtype, _ in types],
            [place_of.get(i, -1) for i in range(len(types))],
            read_parameter_shardings,
        ),
        out_shardings=settle(
            "results",
            launch.out_shardings,
            [(output.shape, output.dtype) for output in outputs],
            [number for _, number in plan.sources],
            read_result_shardings,
        ),
    )


def _name_chosen(
    sharding: Sharding,
    stated: bytes,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    launch: Launch,
) -> Sharding:
    found = _name_sharding(stated, shape, dtype, launch, sharding.memory_kind)
    return sharding.name(found, len(shape)) if isinstance(sharding, Unspecified) else found


def _require_whole(
    executable: Executable, outputs: Sequence[TensorType], places: Sequence[int]
) -> None:
    """Raises `Unimplemented` if a device has a part of a result, for a backend that states none.

    The positions of the parts are unknown then.
    """
    types = executable.output_types
    for output, place in zip(outputs, places, strict=True):
        if (
            0 <= place < len(types)
            and types[place].shape != buffer_type(output.shape, output.dtype)[0]
        ):
            raise Unimplemented(
                f"{executable.backend_name} divided the result {output} of {executable.name!r} "
                f"into parts of shape {types[place].shape}, and does not state how. "
                "Fix: give out_shardings"
            )


def _stated(found: Sequence[bytes], i: int, of: str) -> bytes:
    if not found or i < 0:  # none are stated, or the argument is unused
        return WHOLE
    if i >= len(found):
        raise InvalidReply(
            f"the backend states the shardings of {len(found)} {of}; the program has {i + 1}"
        )
    return found[i]


def read_parameter_shardings(executable: Executable) -> list[bytes]:
    """Returns the shardings that an executable states for its parameters.

    [] for a backend that states none: there, parameters without a sharding are replicated.
    """
    return _ask(executable.parameter_shardings)


def read_result_shardings(executable: Executable) -> list[bytes]:
    """Returns the shardings that an executable states for its results."""
    return _ask(executable.output_shardings)


def _ask(state: Callable[[], Sequence[bytes]]) -> list[bytes]:
    try:
        return [*state()]
    except Unimplemented:
        return []


def _name_sharding(
    content: bytes, shape: tuple[int, ...], dtype: np.dtype[Any], launch: Launch, kind: str | None
) -> Sharding:
    rank = len(buffer_type(shape, dtype)[0])
    tiling = read_op_sharding(content, rank, len(launch.devices) or launch.partitions)
    if rank > len(shape):
        if tiling.parts[-1] > 1:
            raise Unimplemented(
                f"the compiler divides the words of each key of {dtype.name}{list(shape)}. Fix: "
                "give out_shardings"
            )
        tiling = Tiling(tiling.parts[:-1], tiling.tiles)
    for sharding in (launch.whole, *launch.in_shardings, *launch.out_shardings):
        if isinstance(sharding, PositionalSharding) and sharding.devices == launch.devices:
            return PositionalSharding.from_tiling(launch.devices, tiling, kind)
        if not isinstance(sharding, NamedSharding):
            continue
        if launch.devices == (() if is_abstract(sharding) else sharding.devices):
            spec = find_spec(tiling, sharding.mesh)
            if spec is not None:
                return NamedSharding(sharding.mesh, spec, memory_kind=kind)
    return GSPMDSharding.from_tiling(launch.devices, tiling, kind)


def find_spec(tiling: Tiling, mesh: AbstractMesh) -> PartitionSpec | None:
    """Returns the spec over a mesh that divides an array like a tiling; None if none does.

    An axis divides the dimension along which the part changes with it; the step size gives its
    position among the axes of that dimension.
    """
    grid = tiling.coordinates()
    entries: list[list[tuple[int, object]]] = [[] for _ in tiling.parts]
    origin = grid[0]
    unreduced: list[str] = []
    stride = mesh.size
    for name, size in mesh.shape.items():
        stride //= size
        if size == 1:
            continue
        beside = grid[stride]
        moved = [d for d in range(len(origin)) if beside[d] != origin[d]]
        if not moved and tiling.terms[stride : stride + 1] > tiling.terms[:1]:
            unreduced.append(name)
        if len(moved) > 1:
            return None
        if moved:
            entries[moved[0]].append((beside[moved[0]] - origin[moved[0]], name))
    spec = [tuple(name for _, name in sorted(own, key=lambda e: -e[0])) for own in entries]
    while spec and not spec[-1] and not mesh.explicit_axes:
        spec.pop()
    if not {*unreduced}.issubset(mesh.explicit_axes):
        return None
    found = PartitionSpec(*spec, unreduced={*unreduced})
    return found if NamedSharding(mesh, found).tiling(len(tiling.parts)) == tiling else None
