"""`divide_launch`: the launch of a program that is partitioned over devices."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from plugrt.errors import ArgumentMismatch, ShapeError
from plugrt.execution.arrays.arguments import ParameterType
from plugrt.execution.arrays.aval import Aval, intern_aval, is_placed
from plugrt.execution.placement.chosen_shardings import (
    UNSPECIFIED,
    Following,
    PartlyChosen,
    Unspecified,
    find_spec,
    is_chosen,
)
from plugrt.execution.placement.device_claims import Claim, first_devices, sharding_claim
from plugrt.execution.placement.placement import Launch
from plugrt.execution.placement.plan import Plan
from plugrt.execution.shardings.abstract_mesh import AbstractMesh
from plugrt.execution.shardings.auto_sharding import AUTO
from plugrt.execution.shardings.gspmd_sharding import GSPMDSharding, replicate
from plugrt.execution.shardings.named_sharding import (
    NamedSharding,
    is_abstract,
    over_devices,
)
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.shardings.sharding_base import Sharding, SingleDeviceSharding
from plugrt.interface import Device, TensorType


@dataclass(frozen=True, slots=True)
class AskedShardings:
    """The ``in_shardings`` and ``out_shardings`` of each flat argument and result."""

    arguments: tuple[Sharding | None, ...]
    results: tuple[Sharding | None, ...]
    from_program: bool = False
    """Whether they were read from the program, over a mesh without devices: it accepts arguments
    with other shardings, and reshards them."""

    def with_types(self, types: AskedShardings) -> AskedShardings:
        """Returns them with the types' shardings for results without a requested one."""
        pairs = zip(self.results, types.results, strict=True)
        return replace(self, results=tuple([one or other for one, other in pairs]))

    @property
    def auto_mesh(self) -> tuple[int, ...]:
        """The shape of the mesh of `AUTO`; () without `AUTO`."""
        meshes = [s.mesh for s in (*self.arguments, *self.results) if isinstance(s, AUTO)]
        return meshes[0].axis_sizes if meshes else ()

    def over(self, devices: tuple[Device, ...]) -> AskedShardings:
        """Returns them with abstract meshes over these devices, if any, and None for `AUTO`."""

        def name(sharding: Sharding | None) -> Sharding | None:
            if sharding is None or isinstance(sharding, AUTO):
                return None
            return over_devices(sharding, devices) if devices else sharding

        return replace(
            self, arguments=tuple(map(name, self.arguments)), results=tuple(map(name, self.results))
        )

    def claims(self, needed: Iterable[int]) -> list[Claim]:
        """Returns the claims of results and ``needed`` arguments; none if read from a program."""
        if self.from_program:
            return []
        arguments = [self.arguments[i] for i in needed]
        named = {"in_shardings": arguments, "out_shardings": self.results}

        return [
            sharding_claim(partial("{}: {!r}".format, what, sharding), sharding)
            for what, shardings in named.items()
            for sharding in shardings
            if sharding is not None
        ]

    def check_arguments(
        self, avals: Sequence[Aval], needed: Container[int], describe: Callable[[int], str]
    ) -> None:
        """Checks shapes, and the shardings of arguments that are not ``needed``.

        Raises `ShapeError` and `ArgumentMismatch`.
        """
        for i, (asked, aval) in enumerate(zip(self.arguments, avals, strict=True)):
            if asked is None or isinstance(asked, AUTO):
                continue
            require_shape(asked, aval.shape, partial(describe, i))
            fixed = is_placed(aval) and aval.committed and not is_abstract(asked)
            lies = aval.sharding if fixed else None
            if lies is not None and i not in needed and not self.is_moved(i, aval):
                raise refuse_placed(lies, asked, partial(describe, i))

    def is_moved(self, i: int, aval: Aval) -> bool:
        """Whether argument ``i`` may be moved to the requested devices.

        That is so if it is divided in the same way, in memory of the same kind.
        """
        asked = None if self.from_program else self.arguments[i]
        if asked is None or isinstance(asked, AUTO) or is_abstract(asked) or not is_placed(aval):
            return False
        lies, ndim = aval.sharding, len(aval.shape)
        if lies.memory_kind != asked.memory_kind:
            return False
        if lies.is_fully_replicated and asked.is_fully_replicated:
            return True
        tiling = lies.tiling(ndim)
        return tiling is not None and tiling == asked.tiling(ndim)


def refuse_placed(lies: Sharding, asked: Sharding, describe: Callable[[], str]) -> ArgumentMismatch:
    """Returns the error for a committed argument that contradicts in_shardings."""
    return ArgumentMismatch(
        f"{describe()} is sharded as {lies!r}; in_shardings requests {asked!r}. "
        "device_put it to that first, or leave it out of in_shardings"
    )


class DividedProgram(Protocol):
    """The attributes of a traced function that `divide_launch` uses."""

    @property
    def plan(self) -> Plan: ...
    @property
    def output_types(self) -> Sequence[TensorType]: ...
    @property
    def out_memory_kinds(self) -> Sequence[str | None]: ...
    def depends_on(self, parameters: Sequence[int]) -> list[bool]:
        """Returns whether each computed result depends on one of these parameters."""


def divide_launch(
    traced: DividedProgram,
    avals: Sequence[Aval],
    devices: tuple[Device, ...],
    claims: Sequence[Claim],
    asked: AskedShardings | None,
    captured: Sequence[Aval | None] = (),
) -> Launch:
    """Returns the launch of one program that is partitioned over the devices of a mesh.

    Arguments have the shardings ``asked`` for, else their own, else the compiler's choice; scalars
    and arguments that the program does not use are replicated. Results have the shardings ``asked``
    for, else the compiler's choice, in the memories that the program states; results that are
    arguments keep theirs. On one device nothing is chosen: see `_name_results`.
    ``captured`` are the captured arrays that keep their shardings, too. Without ``devices`` the
    launch is over an `AbstractMesh`: see `place_on_first`. Raises `ArgumentMismatch` for a
    committed argument with another sharding than requested.
    """
    plan, kinds = traced.plan, traced.out_memory_kinds
    auto_mesh: tuple[int, ...] = ()
    if asked is not None:
        auto_mesh, asked = asked.auto_mesh, asked.over(devices)
    wanted = asked.arguments if asked else (None,) * len(avals)
    firm = asked is not None and not asked.from_program
    stated = [
        _argument_sharding(aval, one, devices, firm, partial(plan.describe, i))
        for i, (aval, one) in enumerate(zip(avals, wanted, strict=True))
    ]
    whole = _make_whole_sharding(claims, devices)
    alone = whole.num_devices == 1
    if alone:  # as in JAX, the mesh of the first argument that has one
        whole = next((replicate(s) for i in plan.kept if (s := stated[i])), whole)
        auto_mesh = ()
    fixed = alone or plan.is_trivial  # nothing to choose, or no compiler that can
    free = set() if fixed else {i for i in set(plan.kept) - set(plan.passed) if avals[i].shape}
    taken = tuple(s or (UNSPECIFIED if i in free else whole) for i, s in enumerate(stated))
    closed_over = tuple(_place_of(aval, devices) or whole for aval in captured)
    computed = _name_results(traced, avals, taken, whole)
    left: list[Sharding] = []
    for output, (origin, i) in enumerate(plan.sources):
        one = asked.results[output] if asked else None
        is_open = not firm and isinstance(one, NamedSharding) and _is_mixed(one.mesh)
        if isinstance(one, NamedSharding) and (one.is_partial or is_open):
            open_result = replicate(one) if alone else PartlyChosen(one, is_open)
            one = open_result if origin == "result" else None
        if one is None and origin == "result":
            one = computed[output]
        result = one or _keep_sharding(origin, i, taken, closed_over, whole)
        kind = kinds[output] if kinds else None
        left.append(result.with_memory_kind(kind) if kind and not result.memory_kind else result)
    return Launch(
        1, whole.num_devices, devices, taken, tuple(left), committed=True, whole=whole,
        closed_over=closed_over, auto_mesh=auto_mesh,
    )  # fmt: skip


def _is_mixed(mesh: AbstractMesh) -> bool:
    """Whether only some axes of a mesh are Explicit."""
    return 0 < len(mesh.explicit_axes) < len(mesh.axis_names)


def _keep_sharding(
    origin: str,
    i: int,
    taken: Sequence[Sharding],
    closed_over: Sequence[Sharding],
    whole: Sharding,
) -> Sharding:
    """Returns the sharding of a result that is not computed; ``i`` is its number at its origin."""
    if origin == "constant" and closed_over:
        return closed_over[i]
    return taken[i] if origin == "argument" else whole


def _name_results(
    traced: DividedProgram, avals: Sequence[Aval], taken: Sequence[Sharding], whole: Sharding
) -> list[Sharding]:
    """Returns the shardings of results without a requested one.

    As in JAX, a result has the spec of the first argument if it has as many dimensions, depends on
    an array or a struct over its mesh and, on several devices, is divided equally. On one device,
    where a spec divides nothing, other results are replicated over that mesh.
    """
    kept, alone = traced.plan.kept, whole.num_devices == 1
    model, rest = taken[kept[0]] if kept else whole, whole if alone else UNSPECIFIED
    if not isinstance(model, NamedSharding) or model == whole:
        return [rest] * len(traced.plan.sources)
    shape, ndim = model.mesh.abstract_mesh, avals[kept[0]].ndim
    if not alone and find_spec(model.tiling(ndim), model.mesh) == model.spec:
        return [rest] * len(traced.plan.sources)  # read back with that spec anyway
    over = [position for position, i in enumerate(kept) if _mesh_of(avals[i]) == shape]
    named, follows = NamedSharding(model.mesh, model.spec), traced.depends_on(over)
    like: Sharding = named if alone else Following(named)
    return [
        like if origin == "result" and follows[i] and len(t.shape) == ndim else rest
        for (origin, i), t in zip(traced.plan.sources, traced.output_types, strict=True)
    ]


def _mesh_of(aval: Aval) -> AbstractMesh | None:
    lies = aval.sharding
    return lies.mesh.abstract_mesh if isinstance(lies, NamedSharding) else None


def _make_whole_sharding(claims: Sequence[Claim], devices: tuple[Device, ...]) -> Sharding:
    """Returns the sharding of replicated arrays: over the mesh of a claim, if any."""
    for claim in claims:
        if isinstance(claim.sharding, NamedSharding):
            return replicate(claim.sharding)
        if isinstance(claim.sharding, AUTO):
            return NamedSharding(claim.sharding.mesh, PartitionSpec())
    for claim in claims:
        if claim.mesh is not None:
            whole = NamedSharding(claim.mesh, PartitionSpec())
            return over_devices(whole, devices) if devices else whole
    return GSPMDSharding.get_replicated(devices)


def _argument_sharding(
    aval: Aval,
    asked: Sharding | None,
    devices: tuple[Device, ...],
    firm: bool,
    describe: Callable[[], str],
) -> Sharding | None:
    """Returns the requested sharding of an argument, else its own, else None."""
    lies = _place_of(aval, devices)
    if asked is None or (lies is not None and not firm):
        return lies
    committed = is_placed(aval) and aval.committed
    if committed and lies is not None and not lies.is_equivalent_to(asked, len(aval.shape)):
        raise refuse_placed(lies, asked, describe)
    require_shape(asked, aval.shape, describe)
    return asked


def _place_of(aval: Aval | None, devices: tuple[Device, ...]) -> Sharding | None:
    """Returns the sharding of an array that is on the devices of a launch, else None.

    A committed array on a single device is used in the default memory.
    """
    lies = aval.sharding if aval is not None else None
    if aval is None or lies is None:
        return None
    if isinstance(lies, SingleDeviceSharding):
        here = aval.committed and lies.devices == devices
        return SingleDeviceSharding(lies.device) if here else None
    return lies if devices == (() if is_abstract(lies) else lies.devices) else None


def aval_over(aval: Aval, devices: Sequence[Device]) -> Aval:
    """Returns an aval over an `AbstractMesh` over these devices, any other unchanged."""
    if not is_abstract(aval.sharding):
        return aval
    sharding = over_devices(aval.sharding, devices)
    return intern_aval(aval.shape, aval.dtype, sharding, aval.committed, aval.weak, aval.layout)


def place_on_first(launch: Launch, what: str, start: Device) -> Launch:
    """Places a launch without devices on the first devices of the backend of ``start``.

    Raises `InvalidArgument`, which begins with ``what``, if there are too few.
    """
    return place_on(launch, first_devices(what, launch.partitions, start))


def place_on(launch: Launch, devices: tuple[Device, ...]) -> Launch:
    """Places a launch without devices on these devices."""

    def place(sharding: Sharding) -> Sharding:
        if isinstance(sharding, PartlyChosen):
            known = over_devices(sharding.known, devices)
            assert isinstance(known, NamedSharding)
            return PartlyChosen(known, sharding.is_open)
        if isinstance(sharding, Following):
            model = over_devices(sharding.model, devices)
            assert isinstance(model, NamedSharding)
            return Following(model, sharding.memory_kind)
        return over_devices(sharding, devices)

    return replace(
        launch,
        devices=devices,
        in_shardings=tuple(map(place, launch.in_shardings)),
        out_shardings=tuple(map(place, launch.out_shardings)),
        closed_over=tuple(map(place, launch.closed_over)),
        whole=launch.whole and place(launch.whole),
    )


def require_shape(sharding: Sharding, shape: tuple[int, ...], describe: Callable[[], str]) -> None:
    """Raises `ShapeError`, which names the value, if a sharding cannot divide its shape."""
    try:
        sharding.check_shape(shape)
    except ShapeError as error:
        raise ShapeError(f"{describe()}: {error}") from None


def launch_key(
    launch: Launch, types: Sequence[ParameterType], outputs: Sequence[TensorType]
) -> Launch:
    """Returns a key that is equal for launches that can use the same executable.

    Equivalent shardings of different classes have equal keys, on one device all shardings; whether
    results are committed makes no difference.
    """
    launch = replace(launch, committed=False)
    if launch.partitions == 1 and launch.whole is None:
        return launch
    ranks = [len(shape) for shape, _, _ in types]
    return replace(
        launch,
        in_shardings=tuple(map(_find_plain_form, launch.in_shardings, ranks)),
        out_shardings=tuple(
            _find_plain_form(s, len(t.shape))
            for s, t in zip(launch.out_shardings, outputs, strict=True)
        ),
        whole=None,
    )


def _find_plain_form(sharding: Sharding, ndim: int) -> Sharding:
    if isinstance(sharding, Following):
        return Unspecified(sharding.memory_kind)
    if is_chosen(sharding):
        return sharding
    tiling = sharding.tiling(ndim)
    assert tiling is not None, sharding
    return GSPMDSharding.from_tiling(sharding.devices, tiling, sharding.memory_kind)
