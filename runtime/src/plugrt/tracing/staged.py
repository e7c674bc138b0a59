"""`Staged`: a traced function, as a StableHLO module with the `Plan` of its calls."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from plugrt import monitoring
from plugrt.base.bounded_cache import BoundedCache
from plugrt.callbacks.shared_callbacks import share_callbacks
from plugrt.execution.arrays.arguments import ParameterType
from plugrt.execution.compilation.compiler import require_open_sums
from plugrt.execution.launches.replica_launch import InnerPmap
from plugrt.execution.placement.device_claims import Claim
from plugrt.execution.placement.launch_shardings import AskedShardings
from plugrt.execution.placement.placement import Launch
from plugrt.execution.placement.plan import Plan
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.trees import pytrees
from plugrt.interface import Client, HostCallback, Program, TensorType
from plugrt.monitoring.stage_events import record_stage
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.callback_order import call_from_each
from plugrt.stablehlo.entry_attributes import ALIAS, EntryAttributes, donated_parameters
from plugrt.stablehlo.modules import Version, bytecode, parse, portable_artifact
from plugrt.stablehlo.passes import drop_uncalled
from plugrt.stablehlo.platform_cases import resolve_platforms
from plugrt.stablehlo.regions import find_dependent, functions_by_name
from plugrt.stablehlo.shardy_to_gspmd import to_gspmd
from plugrt.tracing.entry import Parameter
from plugrt.tracing.finished_module import finish_module
from plugrt.tracing.launch_attributes import entry_attributes
from plugrt.tracing.lowering_rules import Rules, find_rules, has_rules, with_plugin_rules
from plugrt.tracing.operation_claims import AnyClaim


@dataclass(frozen=True)
class Staged:
    """A traced function: its module, and how calls map to the module's ``main``."""

    plan: Plan
    module: ir.Module
    parameters: tuple[Parameter, ...]
    result_types: tuple[TensorType, ...]
    """The types of the module's results, which are the outputs that it computes."""
    output_types: tuple[TensorType, ...]
    """The types of all flat outputs."""
    weak_outputs: tuple[bool, ...]
    """Whether each flat output represents a Python scalar."""
    out_tree: pytrees.PyTreeSpec
    out_memory_kinds: tuple[str | None, ...] = ()
    """The kind of memory that each flat output was put in; empty: all in the default."""
    callbacks: Mapping[int, HostCallback] = field(default_factory=dict)
    """The Python functions that the program calls, by number."""
    marks: tuple[AnyClaim, ...] = ()
    """The claims of devices and the pmaps within the program, in the order of the numbers that
    operations of ``source`` have."""
    claims: tuple[Claim, ...] = ()
    """Of ``marks`` the claims: facts within the program that determine its devices."""
    pmaps: tuple[InnerPmap, ...] = ()
    """Of ``marks`` the pmaps called within that have operations left."""
    asked: AskedShardings | None = None
    """The shardings that the program states for its arguments and results."""
    out_shardings: tuple[NamedSharding | None, ...] = ()
    """The sharding in the type of each flat output; empty without a mesh of Explicit axes."""
    replicas: int = 1
    """How many replicas the program has."""
    numbers_replicas: bool = False
    """Whether any operation refers to replicas by number."""
    source: bytes | None = None
    """The traced module, if it needs changes before use: with CHLO operations, claims of
    operations, and replicas numbered for each pmap alone; without the tokens of ordered calls."""
    ordered: bool = False
    """Whether it calls Python functions in order."""
    uses_chlo: bool = False
    """Whether ``source`` has CHLO operations."""
    has_keys: bool = False
    """Whether ``source`` has arrays of random keys."""
    asks_platform: bool = False
    """Whether it has conditionals on the platform, or operations of plugrt's own."""
    loaded: BoundedCache[object, Any] = field(default_factory=partial(BoundedCache, 64))
    """The compiled programs, by launch and settings (`plugrt.execution.launches.programs.load`),
    and by platform and rules the fields of the trace for those (`lowered_for`)."""
    placed: BoundedCache[object, object] = field(default_factory=partial(BoundedCache, 64))
    """The captured values on the devices of each launch, by the same keys."""
    _artifacts: dict[
        tuple[Version | None, EntryAttributes | None], tuple[bytes, Mapping[int, HostCallback]]
    ] = field(default_factory=dict)

    @cached_property
    def types(self) -> tuple[ParameterType, ...]:
        """Shape, dtype and weakness of each flat argument."""
        return tuple([(p.type.shape, p.type.dtype, p.weak) for p in self.parameters])

    def program(self, client: Client, launch: Launch) -> Program:
        """Returns the program as ``client`` accepts it: a portable artifact of its version."""
        version = client.capabilities.stablehlo_current_version
        attributes = entry_attributes(self.plan, self.types, self.output_types, launch)
        if self.out_shardings and "unreduced" in self.text:
            require_open_sums(client, self.plan.name)
        return self.program_at(version, attributes)

    def module_for(self, launch: Launch) -> ir.Module:
        """Returns the module with the shardings of a launch, as Shardy's attributes."""
        attributes = entry_attributes(self.plan, self.types, self.output_types, launch)
        if launch.partitions == 1 or attributes is None:
            return self.module
        return attributes.add_to(self.module)

    def aliased_arguments(self, launch: Launch) -> list[int]:
        """Returns the numbers of donated arguments that are paired with a particular result."""
        return [self.plan.kept[i] for i in donated_parameters(self.module_for(launch), (ALIAS,))]

    def sharing_compiled(self, compiled: BoundedCache[object, Any]) -> Staged:
        """Returns the trace with an equal one's lowered and compiled programs, ``compiled``.

        The captured values may differ, since they are arguments of the programs. Python functions
        that programs call belong to executables: such traces keep their own.
        """
        if self.callbacks:
            return self
        plan = self.plan
        digest = hashlib.sha256(self.text.encode()).digest()
        key = (digest, plan.name, plan.kept, plan.sources, plan.fed, plan.donated, plan.unpaired)
        return replace(self, loaded=compiled.get_or_make(key, lambda: self.loaded))

    def depends_on(self, parameters: Sequence[int]) -> list[bool]:
        """Returns whether each computed result depends on one of these parameters of ``main``."""
        main = functions_by_name(self.module)["main"].regions[0].blocks[0]
        return find_dependent(main, parameters)

    @property
    def depends_on_platform(self) -> bool:
        """Whether platforms may need different programs."""
        return not self.plan.is_trivial and (self.asks_platform or has_rules())

    def lowered_for(self, platforms: Sequence[str]) -> Staged:
        """Returns the trace in the form that a platform compiles; ``platforms`` are its names.

        Conditionals on the platform are resolved, and operations replaced by the results of the
        platform's registered lowerings. Each combination of lowerings has its own compiled
        programs. Returns the trace itself if nothing changes. Raises `Unimplemented` if a
        conditional has no branch for the platform, and `ProgramError` for errors of lowerings.
        """
        if self.plan.is_trivial:
            return self
        rules = find_rules(platforms)
        if self.asks_platform:
            rules = with_plugin_rules(rules, platforms)
        if not rules and not self.asks_platform:
            return self
        key = (*platforms, rules)
        fields = self.loaded.get_or_make(key, lambda: _lower(self, platforms, rules))
        return replace(self, asks_platform=False, **fields)

    def module_with(self, attributes: EntryAttributes | None) -> ir.Module:
        """Returns the module, with the layouts and memories that a launch states."""
        return self._module_and_callbacks(attributes)[0]

    def _module_and_callbacks(
        self, attributes: EntryAttributes | None
    ) -> tuple[ir.Module, Mapping[int, HostCallback]]:
        """Returns the module for a launch, and the Python functions that it calls."""
        if attributes is None:
            return self.module, self.callbacks
        module, callbacks = attributes.add_to(self.module), self.callbacks
        if attributes.partitions > 1:
            if callbacks:
                partitions, here = attributes.partitions, attributes.here
                renumbered, callbacks = share_callbacks(callbacks, partitions, here)
                call_from_each(module, renumbered, partitions, sends=bool(here))
            if not attributes.shardy:
                to_gspmd(module)
        return module, callbacks

    def program_at(
        self, version: Version | None, attributes: EntryAttributes | None = None
    ) -> Program:
        """Returns the program as a portable artifact that a reader of ``version`` accepts."""
        found = self._artifacts.get((version, attributes))
        if found is None:
            with record_stage(monitoring.LOWER, self.plan.name):
                module, callbacks = self._module_and_callbacks(attributes)
                found = portable_artifact(module, version), callbacks
                # The devices of an executable share functions that count its calls.
                if callbacks is self.callbacks:
                    self._artifacts[version, attributes] = found
        code, callbacks = found
        return Program(code, "mlir", self.plan.name, callbacks)

    @cached_property
    def bytecode(self) -> bytes:
        """The module as it was traced, as MLIR bytecode: for another trace, or a platform."""
        return bytecode(self.module) if self.source is None else self.source

    @cached_property
    def text(self) -> str:
        """The module as StableHLO text."""
        return str(self.module)


def _lower(staged: Staged, platforms: Sequence[str], rules: Rules) -> Mapping[str, object]:
    """Returns the fields of a trace that differ for a platform; see `Staged.lowered_for`."""
    name = staged.plan.name
    module = parse(staged.bytecode, name)
    with module.context, ir.Location.unknown():
        if staged.asks_platform:
            resolve_platforms(module, platforms, name)
        numbered = staged.replicas if staged.numbers_replicas else 0
        marked = bool(staged.marks)
        finished = finish_module(
            *(module, name, staged.callbacks, staged.uses_chlo, numbered, marked, rules),
            has_keys=staged.has_keys,
        )
        drop_uncalled(module)
    return {"module": module, "loaded": BoundedCache(64), "_artifacts": {}, **finished}
