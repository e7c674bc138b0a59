"""`load`: compiles and loads a traced function; `resolve_launch`: determines its devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, Self

from plugrt.base.bounded_cache import BoundedCache
from plugrt.errors import Unimplemented
from plugrt.execution.arrays.arguments import ParameterType
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.aval import Aval, is_placed
from plugrt.execution.compilation.buffer_copy import require_layouts
from plugrt.execution.compilation.compiler import compile_program, compile_settings
from plugrt.execution.executables.agreements import agree_on_program
from plugrt.execution.launches.donation import pair_parts, warn_of_donations
from plugrt.execution.launches.loaded_program import LoadedProgram
from plugrt.execution.launches.replica_launch import (
    InnerPmap,
    find_replicas,
    launch_on_replicas,
    replicate_launch,
)
from plugrt.execution.placement.chosen_shardings import is_chosen, known_part, settle_shardings
from plugrt.execution.placement.default_device import default_device
from plugrt.execution.placement.device_claims import Claim, claims_of, resolve_devices
from plugrt.execution.placement.launch_layouts import keep_layouts, settle_layouts
from plugrt.execution.placement.launch_shardings import (
    AskedShardings,
    aval_over,
    divide_launch,
    launch_key,
    place_on_first,
    refuse_placed,
    require_shape,
)
from plugrt.execution.placement.placement import Launch, single_device_launch
from plugrt.execution.placement.plan import Plan, is_tuple_program
from plugrt.execution.placement.result_avals import (
    check_memories,
    explain_refusal,
    result_avals,
)
from plugrt.execution.placement.specs_in_context import context_claim
from plugrt.execution.shardings.abstract_mesh import AbstractMesh
from plugrt.execution.shardings.sharding_base import (
    Sharding,
    SingleDeviceSharding,
)
from plugrt.execution.transfers.host_values import HostConstant
from plugrt.execution.transfers.resharding import reshard
from plugrt.execution.transfers.whole_arrays import move
from plugrt.execution.trees import pytrees
from plugrt.interface import Client, CompileOptions, Device, LoadedExecutable, Program, TensorType
from plugrt.plugins.selection.backends import process_backends


class TracedProgram(Protocol):
    """The interface of a traced function that `load` uses."""

    @property
    def plan(self) -> Plan: ...
    @property
    def types(self) -> tuple[ParameterType, ...]:
        """Shape, dtype and weakness of each flat argument, on one device."""

    @property
    def module(self) -> object:
        """The StableHLO module of the program."""

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        """The types of all flat outputs, on one device."""

    @property
    def weak_outputs(self) -> tuple[bool, ...]: ...
    @property
    def out_tree(self) -> pytrees.PyTreeSpec: ...
    @property
    def loaded(self) -> BoundedCache[object, Any]:
        """The executables compiled from it, by launch and relevant settings."""

    @property
    def placed(self) -> BoundedCache[Any, Any]:
        """The captured values on the devices of each launch, by the same keys."""

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The facts within the program that determine its devices."""

    @property
    def asked(self) -> AskedShardings | None:
        """The shardings that the program itself states for its arguments and results."""

    @property
    def replicas(self) -> int:
        """How many replicas the program has."""

    @property
    def pmaps(self) -> Sequence[InnerPmap]:
        """The pmaps that the function calls."""

    @property
    def out_memory_kinds(self) -> tuple[str | None, ...]:
        """The memory kind of each flat output; empty if all are in the default memory."""

    def sharing_compiled(self, compiled: BoundedCache[Any, object]) -> Self:
        """Returns it with the executables of a program with equal contents in ``compiled``."""

    @property
    def depends_on_platform(self) -> bool:
        """Whether its program may differ by platform."""

    def depends_on(self, parameters: Sequence[int]) -> list[bool]:
        """Returns whether each computed result depends on one of these parameters."""

    def lowered_for(self, platforms: Sequence[str]) -> TracedProgram:
        """Returns the program for a platform with these names; itself if all have the same."""

    def module_for(self, launch: Launch) -> object:
        """Returns the StableHLO module with the shardings of a launch."""

    def aliased_arguments(self, launch: Launch) -> Sequence[int]:
        """Returns the arguments whose memory the program itself assigns to results."""

    def program(self, client: Client, launch: Launch) -> Program:
        """Returns the program in the form that ``client`` accepts for a launch."""


def load(traced: TracedProgram, launch: Launch) -> LoadedProgram:
    """Compiles and loads a traced function for a launch, and caches the result.

    Its captured values are put on the launch's devices once. A launch without devices is on the
    first ones of the default backend.
    """
    if not launch.devices:
        launch = place_on_first(launch, repr(traced.plan.name), default_device())
    if traced.depends_on_platform:
        traced = traced.lowered_for(process_backends().platforms_of(launch.client))
    plain = launch.is_plain
    if not plain:
        _check_results(traced, launch)
    key = (launch_key(launch, traced.types, traced.output_types), compile_settings())
    [executable] = traced.loaded.get_or_make(key, lambda: (_compile(traced, launch),))
    constants: list[Array] = []
    if traced.plan.constants:
        constants = traced.placed.get_or_make(key, lambda: _place_constants(traced.plan, launch))
    plan, types, results = traced.plan, traced.types, traced.output_types
    divided = launch.partitions > 1 and bool(plan.donated or plan.unpaired)
    aliased = traced.aliased_arguments(launch) if divided else ()
    if executable is not None and not plain:
        launch = settle_shardings(launch, plan, types, results, executable.executable)
        launch = settle_layouts(launch, plan, types, results, executable)
    if divided:
        plan = pair_parts(plan, launch, types, results, aliased)
    warn_of_donations(plan, types)
    outputs = result_avals(traced, launch)
    return LoadedProgram(
        plan, types, launch, executable, constants, outputs,
        lambda: traced.module_for(launch),
    )  # fmt: skip


def resolve_launch(
    traced: TracedProgram,
    avals: Sequence[Aval],
    explicit: Device | None = None,
    *,
    all_count: bool = False,
    captured_count: bool = False,
    asked: AskedShardings | None = None,
    mesh: AbstractMesh | None = None,
) -> Launch:
    """Returns the launch for the needed arguments and the requested device or shardings.

    An explicit device wins; a program over a mesh without devices is on the first ones of its
    backend, and without an explicit one on none yet (see `load`). Else the committed arguments
    decide, with ``asked``, the constraints within the program and ``mesh`` in the context, by
    default `plugrt.set_mesh`'s, and must agree; uncommitted ones follow. Without any of them, the
    default device is used. With ``all_count`` unused arguments also decide: ``zeros_like(x)`` is
    where ``x`` is. With ``captured_count`` the captured arrays decide, too, and keep their
    shardings. A program that only passes arguments through does not move them. Raises
    `DeviceMismatch`. With a pmap inside, it is a launch of replicas: see `replicate_launch`.
    """
    plan = traced.plan
    needed = range(len(avals)) if all_count else plan.needed
    asked = asked.with_types(traced.asked) if asked and traced.asked else asked or traced.asked
    if asked is not None and not asked.from_program:
        asked.check_arguments(avals, needed, plan.describe)
    named = asked.claims(needed) if asked else []
    claims = [*named, *traced.claims]
    if (replicas := find_replicas(avals, traced.replicas)) is not None:
        return launch_on_replicas(traced, avals, replicas)
    held = [i for i in needed if not asked.is_moved(i, avals[i])] if asked else needed
    arguments = claims_of([avals[i] for i in held], lambda n: plan.describe(held[n]))
    captured = (
        [c._aval if type(c) is Array else None for c in plan.constants] if captured_count else []
    )
    arguments += claims_of([*filter(None, captured)], lambda _: "an array in its closure")
    if explicit is not None and not any(claim.mesh is not None for claim in claims):
        claims.append(Claim((explicit,), lambda: "jit's device or backend"))
        arguments = []
    if traced.pmaps:
        return replicate_launch(traced, avals, claims, arguments)
    claims += arguments
    if (surrounding := context_claim(mesh)) is not None:
        claims.append(surrounding)
    devices, committed = resolve_devices(claims, repr(plan.name))
    if devices:
        avals = [aval if aval.sharding is None else aval_over(aval, devices) for aval in avals]
    if len(devices) == 1 and asked is not None:
        _check_asked(asked, avals, traced)
    over_mesh = explicit is None and any(claim.is_over_mesh for claim in claims)
    if len(devices) != 1 or over_mesh:
        divided = divide_launch(traced, avals, devices, claims, asked, captured)
        divided = keep_layouts(divided, plan, avals)
        if devices or explicit is None:
            return divided
        return place_on_first(divided, repr(plan.name), explicit)
    [device] = devices
    kinds = traced.out_memory_kinds or (None,) * len(traced.output_types)
    launch = single_device_launch(device, len(avals), kinds, committed)
    if plan.is_trivial and explicit is None and not named:
        launch = _leave_in_place(launch, plan, avals)
    return keep_layouts(launch, plan, avals)


def _leave_in_place(launch: Launch, plan: Plan, avals: Sequence[Aval]) -> Launch:
    """Returns the launch of a program that only passes arguments through, with their shardings."""
    shardings = [
        k.sharding
        if is_placed(k) and not (launch.committed and isinstance(k.sharding, SingleDeviceSharding))
        else here
        for k, here in zip(avals, launch.in_shardings, strict=True)
    ]
    out = [
        shardings[i] if origin == "argument" else here
        for (origin, i), here in zip(plan.sources, launch.out_shardings, strict=True)
    ]
    return replace(launch, in_shardings=tuple(shardings), out_shardings=tuple(out))


def _compile(traced: TracedProgram, launch: Launch) -> LoadedExecutable | None:
    plan, client = traced.plan, launch.devices[0].client
    if plan.is_trivial:
        return None
    if len(launch.devices) > 1 and not client.capabilities.multiple_devices:
        raise Unimplemented(
            f"{plan.name!r} on {len(launch.devices)} devices: {client.backend_name} does not "
            "declare that one launch can run on several devices (capability multiple_devices)"
        )
    if launch.partitions > 1 and not client.capabilities.partitions:
        raise Unimplemented(
            f"{plan.name!r} divided over {launch.partitions} devices: {client.backend_name} does "
            "not declare that a program can be partitioned (capability partitions)"
        )
    if launch.names_layouts:
        require_layouts(launch.devices[0], f"{plan.name!r} with arguments or results in layouts")
    inputs = [TensorType(*traced.types[i][:2]) for i in plan.kept]
    program = traced.program(client, launch)
    agree_on_program(program, launch.devices)
    tupled = is_tuple_program(client, len(plan.kept) + plan.fed)
    options = compile_options(launch, plan, parameter_is_tupled=tupled)
    if launch.is_plain:  # all results are in the default memory
        return compile_program(client, program, options, inputs)
    with explain_refusal(plan, launch):
        loaded = compile_program(client, program, options, inputs)
    check_memories(plan, launch, loaded)
    return loaded


def _check_results(traced: TracedProgram, launch: Launch) -> None:
    """Raises `ShapeError` if a result's shape does not fit its requested sharding."""
    if launch.partitions > 1:
        for i, asked in enumerate(launch.out_shardings):
            known, (origin, j) = known_part(asked), traced.plan.sources[i]
            if known is not None and not (origin == "argument" and known is launch.in_shardings[j]):
                _check_result(traced, i, known)


def _check_asked(asked: AskedShardings, avals: Sequence[Aval], traced: TracedProgram) -> None:
    """Checks the requested shardings on one device.

    Raises `ShapeError` for a result without the dimensions of its sharding, and `ArgumentMismatch`
    for a committed argument in another memory.
    """
    for i, (sharding, aval) in enumerate(zip(asked.arguments, avals, strict=True)):
        if sharding is None or not (is_placed(aval) and aval.committed):
            continue
        if aval.sharding.memory_kind != sharding.memory_kind:
            raise refuse_placed(aval.sharding, sharding, partial(traced.plan.describe, i))
    for i, sharding in enumerate(asked.results):
        if sharding is not None:
            _check_result(traced, i, sharding)


def _check_result(traced: TracedProgram, i: int, sharding: Sharding) -> None:
    shape = traced.output_types[i].shape
    require_shape(sharding, shape, lambda: f"result {i} of {traced.plan.name!r}")


def compile_options(
    launch: Launch, plan: Plan, *, parameter_is_tupled: bool = False
) -> CompileOptions:
    """Returns the compile options of a program for a launch, including the shardings that the
    compiler may choose.
    """
    options = launch.compile_options(parameter_is_tupled=parameter_is_tupled)
    if launch.partitions == 1:
        return options
    left = [launch.out_shardings[i] for i, (o, _) in enumerate(plan.sources) if o == "result"]
    taken = [launch.in_shardings[i] for i in plan.kept]
    return replace(
        options,
        allow_spmd_sharding_propagation_to_output=tuple(map(is_chosen, left)),
        allow_spmd_sharding_propagation_to_parameters=(
            *map(is_chosen, taken),
            *[False] * plan.fed,
        ),
    )


def _place_constants(plan: Plan, launch: Launch) -> list[Array]:
    placed: list[Array] = []
    for i, constant in enumerate(plan.constants):
        sharding = launch.constant_sharding(i)
        if isinstance(constant, HostConstant):
            placed.append(constant.place(sharding))
        elif isinstance(sharding, SingleDeviceSharding):
            placed.append(move(constant, sharding.device, constant.committed))
        else:
            placed.append(reshard(constant, sharding, share=False))
    return placed
