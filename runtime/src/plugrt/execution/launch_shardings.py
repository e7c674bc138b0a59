"""Launches on several devices: the shardings of arguments, and those of results, read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from plugrt import hlo_proto
from plugrt.errors import ArgumentMismatch, Unimplemented
from plugrt.execution.arguments import Aval, ParameterType
from plugrt.execution.device_claims import Claim
from plugrt.execution.divided import is_divided, replicate
from plugrt.execution.gspmd_sharding import GSPMDSharding
from plugrt.execution.mesh import Mesh
from plugrt.execution.named_sharding import NamedSharding
from plugrt.execution.op_sharding import read_op_sharding
from plugrt.execution.partition_spec import PartitionSpec
from plugrt.execution.placement import Launch
from plugrt.execution.plan import Plan
from plugrt.execution.sharding import Sharding
from plugrt.execution.signature import Signature
from plugrt.execution.tiling import Tiling
from plugrt.interface import Device, Executable, LoadedExecutable, TensorType


class _Unspecified(Sharding):
    """The sharding of a result that the compiler chooses; what it chose is read back."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSPECIFIED"


UNSPECIFIED = _Unspecified()


@dataclass(frozen=True, slots=True)
class AskedShardings:
    """What ``in_shardings`` and ``out_shardings`` say of each flat argument and result."""

    arguments: tuple[Sharding | None, ...]
    results: tuple[Sharding | None, ...]

    def claims(self) -> list[Claim]:
        """Returns the claims of both."""
        named = {"in_shardings": self.arguments, "out_shardings": self.results}
        return [
            Claim(sharding.devices, partial("{}: {!r}".format, what, sharding), sharding)
            for what, shardings in named.items()
            for sharding in shardings
            if sharding is not None
        ]


def divide_launch(
    plan: Plan,
    avals: Sequence[Aval],
    claims: Sequence[Claim],
    asked: AskedShardings | None,
) -> Launch:
    """Returns the launch of one program that is divided over the devices of the claims.

    Arguments are taken as ``asked``, else as they lie, else whole on each device. Results are left
    as ``asked``, else as the compiler chooses; those that are arguments stay as they are. Raises
    `ArgumentMismatch` for a committed argument that lies otherwise than asked for.
    """
    devices = claims[0].devices
    wanted = asked.arguments if asked else (None,) * len(avals)
    named = [claim.sharding for claim in claims if isinstance(claim.sharding, NamedSharding)]
    whole = replicate(named[0]) if named else GSPMDSharding.get_replicated(devices)
    taken = tuple(
        _argument_sharding(aval, one, devices, whole, partial(plan.describe, i))
        for i, (aval, one) in enumerate(zip(avals, wanted, strict=True))
    )
    left: list[Sharding] = []
    for output, (origin, i) in enumerate(plan.sources):
        one = asked.results[output] if asked else None
        free = {"argument": taken[i] if origin == "argument" else whole, "result": UNSPECIFIED}
        left.append(one or free.get(origin, whole))
    return Launch(1, len(devices), devices, taken, tuple(left), committed=True, whole=whole)


def _argument_sharding(
    aval: Aval,
    asked: Sharding | None,
    devices: tuple[Device, ...],
    whole: Sharding,
    describe: Callable[[], str],
) -> Sharding:
    lies = aval.sharding if isinstance(aval, Signature) else None
    if lies is not None and not (is_divided(lies) and lies.devices == devices):
        lies = None
    if asked is None:
        return lies or whole
    committed = isinstance(aval, Signature) and aval.committed
    if committed and lies is not None and not lies.is_equivalent_to(asked, len(aval.shape)):
        raise ArgumentMismatch(
            f"{describe()} lies on the devices as {lies!r}; in_shardings asks for {asked!r}. "
            "device_put it to that first, or leave it out of in_shardings"
        )
    asked.shard_shape(aval.shape)  # refuses what does not divide
    return asked


def launch_key(
    launch: Launch, types: Sequence[ParameterType], outputs: Sequence[TensorType]
) -> Launch:
    """Returns what launches have in common that one executable serves.

    Equivalent shardings of different classes are one, and whether results are committed makes no
    difference.
    """
    launch = replace(launch, committed=False)
    if launch.partitions == 1:
        return launch
    ranks = [len(shape) for shape, _, _ in types]
    return replace(
        launch,
        in_shardings=tuple(map(_plain_form, launch.in_shardings, ranks)),
        out_shardings=tuple(
            _plain_form(s, len(t.shape)) for s, t in zip(launch.out_shardings, outputs, strict=True)
        ),
        whole=None,
    )


def _plain_form(sharding: Sharding, ndim: int) -> Sharding:
    if sharding is UNSPECIFIED:
        return sharding
    tiling = sharding.tiling(ndim)
    assert tiling is not None, sharding
    kind = sharding.memory_kind
    if kind == sharding.devices[0].default_memory().kind:
        kind = None
    return GSPMDSharding.from_tiling(sharding.devices, tiling, kind)


def settle_shardings(
    launch: Launch, plan: Plan, outputs: Sequence[TensorType], loaded: LoadedExecutable | None
) -> Launch:
    """Returns the launch with the shardings that the compiler chose for results.

    They are those of an argument's mesh where its axes say the same.
    """
    if UNSPECIFIED not in launch.out_shardings:
        return launch
    found = read_result_shardings(loaded.executable) if loaded is not None else []
    meshes = {s.mesh: None for s in (launch.whole, *launch.in_shardings, *launch.out_shardings)
              if isinstance(s, NamedSharding) and isinstance(s.mesh, Mesh)
              and s.devices == launch.devices}  # fmt: skip
    settled = []
    for output, (sharding, (_, i)) in enumerate(
        zip(launch.out_shardings, plan.sources, strict=True)
    ):
        if sharding is UNSPECIFIED:
            ndim, count = len(outputs[output].shape), len(launch.devices)
            tiling = read_op_sharding(found[i] if found else b"", ndim, count)
            sharding = _name_sharding(tiling, launch.devices, [*meshes])
        settled.append(sharding)
    return replace(launch, out_shardings=tuple(settled))


def read_result_shardings(executable: Executable) -> list[bytes]:
    """Returns what an executable states of its results, or its optimised program does.

    [] for a backend that states neither: what no program divides is whole there.
    """
    try:
        return [*executable.output_shardings()]
    except Unimplemented:
        pass
    try:
        return hlo_proto.output_shardings(hlo_proto.read_module(executable.optimized_program()))
    except Unimplemented:
        return []


def _name_sharding(tiling: Tiling, devices: tuple[Device, ...], meshes: Sequence[Mesh]) -> Sharding:
    for mesh in meshes:
        spec = find_spec(tiling, mesh)
        if spec is not None:
            return NamedSharding(mesh, spec)
    return GSPMDSharding.from_tiling(devices, tiling)


def find_spec(tiling: Tiling, mesh: Mesh) -> PartitionSpec | None:
    """Returns the spec over a mesh that divides an array like a tiling; None if none does.

    An axis divides the dimension along which the part changes with it, in steps that say its place
    among the axes of that dimension.
    """
    grid = [*map(list, _coordinates(tiling, mesh))]
    entries: list[list[tuple[int, Any]]] = [[] for _ in tiling.parts]
    origin = grid[0]
    stride = mesh.size
    for name, size in mesh.shape.items():
        stride //= size
        if size == 1:
            continue
        beside = grid[stride]
        moved = [d for d in range(len(origin)) if beside[d] != origin[d]]
        if len(moved) > 1:
            return None
        if moved:
            entries[moved[0]].append((beside[moved[0]] - origin[moved[0]], name))
    spec = [tuple(name for _, name in sorted(own, key=lambda e: -e[0])) for own in entries]
    while spec and not spec[-1]:
        spec.pop()
    found = PartitionSpec(*spec)
    return found if NamedSharding(mesh, found).tiling(len(tiling.parts)) == tiling else None


def _coordinates(tiling: Tiling, mesh: Mesh) -> list[tuple[int, ...]]:
    """Returns, for each device of the mesh, the part that it has, by dimension."""
    result = []
    for tile in tiling.tiles:
        at = []
        for parts in reversed(tiling.parts):
            at.append(tile % parts)
            tile //= parts
        result.append(tuple(reversed(at)))
    return result
