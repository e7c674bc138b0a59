"""`load`: from a traced function to a loaded program; `resolve_launch`: where it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from plugrt.bounded_cache import BoundedCache
from plugrt.errors import Unimplemented
from plugrt.execution import tree
from plugrt.execution.arguments import Aval, ParameterType
from plugrt.execution.array import Array
from plugrt.execution.compiler import compile_program, compile_settings
from plugrt.execution.host_constants import HostConstant
from plugrt.execution.loaded_program import LoadedProgram
from plugrt.execution.placement import Launch, resolve_device, single_device_launch
from plugrt.execution.plan import Plan
from plugrt.execution.resharding import reshard
from plugrt.execution.sharding import Sharding, SingleDeviceSharding
from plugrt.execution.signature import Signature, intern_signature
from plugrt.execution.transfer import move
from plugrt.interface import Client, Device, LoadedExecutable, Program, TensorType


class TracedProgram(Protocol):
    """The interface of a traced function that `load` uses."""

    @property
    def plan(self) -> Plan: ...
    @property
    def types(self) -> tuple[ParameterType, ...]:
        """Shape, dtype and weakness of each flat argument, on one device."""

    @property
    def module(self) -> Any:
        """The StableHLO module, of which the program is made."""

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        """The types of all flat outputs, on one device."""

    @property
    def weak_outputs(self) -> tuple[bool, ...]: ...
    @property
    def out_tree(self) -> tree.PyTreeSpec: ...
    @property
    def loaded(self) -> BoundedCache[Any, Any]:
        """The executables compiled from it, by launch and the settings that count."""

    def program(self, client: Client) -> Program:
        """Returns the program as ``client`` takes it."""


def load(traced: TracedProgram, launch: Launch) -> LoadedProgram:
    """Returns a traced function compiled and loaded for a launch, from its cache where it was.

    What the function closed over is put on the launch's devices, once.
    """
    # Whether results are committed makes no difference to what is compiled.
    key = (replace(launch, committed=False), compile_settings())
    executable, constants = traced.loaded.get_or_make(
        key, lambda: (_compile(traced, launch), _place_constants(traced.plan, launch))
    )
    outputs = [
        intern_signature(_whole_shape(t.shape, sharding, launch), t.dtype, sharding,
                     launch.committed, weak)
        for t, sharding, weak in zip(
            traced.output_types, launch.out_shardings, traced.weak_outputs, strict=True
        )
    ]  # fmt: skip
    return LoadedProgram(
        traced.plan, traced.types, launch, executable, constants, outputs, lambda: traced.module
    )


def resolve_launch(
    traced: TracedProgram,
    avals: Sequence[Aval],
    explicit: Device | None = None,
    *,
    all_count: bool = False,
) -> Launch:
    """Returns the launch on one device that follows from the arguments that are needed.

    With ``all_count`` unused ones also decide: ``zeros_like(x)`` is where ``x`` is. A program that
    only passes arguments through leaves them where they are. Raises `DeviceMismatch`.
    """
    plan = traced.plan
    needed = range(len(avals)) if all_count else plan.needed
    device, committed = resolve_device(
        [avals[i] for i in needed], lambda n: plan.describe(needed[n]), explicit, repr(plan.name)
    )
    launch = single_device_launch(device, len(avals), len(traced.output_types), committed)
    if not plan.is_trivial or explicit is not None:
        return launch
    shardings = [
        k.sharding if isinstance(k, Signature) and _keeps_sharding(k, committed) else here
        for k, here in zip(avals, launch.in_shardings, strict=True)
    ]
    out = [
        shardings[i] if origin == "argument" else here
        for (origin, i), here in zip(plan.sources, launch.out_shardings, strict=True)
    ]
    return replace(launch, in_shardings=tuple(shardings), out_shardings=tuple(out))


def _keeps_sharding(signature: Signature, committed: bool) -> bool:
    return not committed or not isinstance(signature.sharding, SingleDeviceSharding)


def _compile(traced: TracedProgram, launch: Launch) -> LoadedExecutable | None:
    plan, client = traced.plan, launch.client
    if plan.is_trivial:
        return None
    if len(launch.devices) > 1 and not client.capabilities.multiple_devices:
        raise Unimplemented(
            f"{plan.name!r} on {len(launch.devices)} devices: {client.backend_name} does not "
            "declare that one launch can run on several devices (capability multiple_devices)"
        )
    inputs = [TensorType(*traced.types[i][:2]) for i in plan.kept]
    return compile_program(client, traced.program(client), launch.compile_options(), inputs)


def _place_constants(plan: Plan, launch: Launch) -> list[Array]:
    everywhere = launch.everywhere
    placed: list[Array] = []
    for constant in plan.constants:
        if isinstance(constant, HostConstant):
            placed.append(constant.place(everywhere))
        elif isinstance(everywhere, SingleDeviceSharding):
            placed.append(move(constant, everywhere.device, constant.committed))
        else:
            placed.append(reshard(constant, everywhere, share=False))
    return placed


def _whole_shape(shape: tuple[int, ...], sharding: Sharding, launch: Launch) -> tuple[int, ...]:
    return sharding.whole_shape(shape) if launch.of_parts else shape
