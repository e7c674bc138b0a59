"""`stage`: traces a Python function to a StableHLO module and a `Plan` of its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypedDict

from plugrt import monitoring
from plugrt.bounded_cache import BoundedCache
from plugrt.errors import NotAnArray, TracingError
from plugrt.execution import tree
from plugrt.execution.arguments import ParameterType
from plugrt.execution.array import Array
from plugrt.execution.device_claims import Claim
from plugrt.execution.mesh import AbstractMesh
from plugrt.execution.placement import Launch
from plugrt.execution.plan import Plan
from plugrt.interface import Client, HostCallback, Program, TensorType
from plugrt.monitoring.stages import record_stage
from plugrt.stablehlo.bindings import MLIRError, func, ir
from plugrt.stablehlo.callbacks import (
    callback_number,
    has_ordered,
    host_callbacks,
    order_callbacks,
)
from plugrt.stablehlo.dead_code import remove_dead_code
from plugrt.stablehlo.entry_attributes import EntryAttributes
from plugrt.stablehlo.modules import Version, bytecode, parse, portable_artifact
from plugrt.stablehlo.passes import drop_uncalled, legalize_chlo
from plugrt.stablehlo.platform_cases import resolve_platforms
from plugrt.stablehlo.regions import functions_by_name
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.entry import (
    Parameter,
    add_main,
    alias_donated,
    has_effects,
    name_results,
    prune,
    prune_constants,
    route_outputs,
    set_type,
    warn_of_constants,
)
from plugrt.tracing.launch_attributes import entry_attributes
from plugrt.tracing.lowering import lower_operations
from plugrt.tracing.lowering_rules import Rules, any_rules, find_rules
from plugrt.tracing.trace import Trace
from plugrt.tracing.tracer import Tracer


@dataclass(frozen=True)
class Staged:
    """A traced function: its module, and how calls map to the module's ``main``."""

    plan: Plan
    module: ir.Module
    parameters: tuple[Parameter, ...]
    result_types: tuple[TensorType, ...]
    """The types of the module's results, those outputs that it computes."""
    output_types: tuple[TensorType, ...]
    """The types of all flat outputs."""
    weak_outputs: tuple[bool, ...]
    """Whether each flat output stands for a Python scalar."""
    out_tree: tree.PyTreeSpec
    out_memory_kinds: tuple[str | None, ...] = ()
    """The kind of memory that each flat output was put in; empty: all in the default."""
    callbacks: Mapping[int, HostCallback] = field(default_factory=dict)
    """The Python functions that the program calls, by number."""
    claims: tuple[Claim, ...] = ()
    """What within the program says which devices it runs on."""
    source: bytes | None = None
    """The module as it was traced, with CHLO's operations and without the tokens of ordered calls,
    where it has those."""
    ordered: bool = False
    """Whether it calls Python functions in order."""
    uses_chlo: bool = False
    """Whether ``source`` has operations of CHLO's."""
    asks_platform: bool = False
    """Whether it has conditionals on the platform."""
    loaded: BoundedCache[Any, Any] = field(default_factory=lambda: BoundedCache(64))
    """What was compiled of it, by launch and settings; see `plugrt.execution.programs.load`."""
    _artifacts: dict[tuple[Version | None, EntryAttributes | None], bytes] = field(
        default_factory=dict
    )
    _lowered: BoundedCache[Any, Staged] = field(default_factory=lambda: BoundedCache(64))
    """By platform and rules."""

    @property
    def types(self) -> tuple[ParameterType, ...]:
        """Shape, dtype and weakness of each flat argument."""
        return tuple((p.type.shape, p.type.dtype, p.weak) for p in self.parameters)

    def program(self, client: Client, launch: Launch) -> Program:
        """Returns the program as ``client`` takes it: a portable artifact of its version."""
        version = client.capabilities.stablehlo_current_version
        attributes = entry_attributes(self.plan, self.types, self.output_types, launch)
        return self.program_at(version, attributes)

    @property
    def depends_on_platform(self) -> bool:
        """Whether platforms may have programs of their own of it."""
        return not self.plan.is_trivial and (self.asks_platform or any_rules())

    def lowered_for(self, platforms: Sequence[str]) -> Staged:
        """Returns the trace as a platform compiles it, by the names of the platform.

        Conditionals on the platform are resolved, and operations replaced by what the lowerings
        that are registered for it give. Each combination of those has what was compiled of it for
        itself. The trace itself is returned where there is nothing to do. Raises `Unimplemented`
        where a conditional has no branch for it, and `ProgramError` for what lowerings raise.
        """
        rules = () if self.plan.is_trivial else find_rules(platforms)
        if not rules and not self.asks_platform:
            return self
        return self._lowered.get_or_make(
            (*platforms, rules), lambda: _lower(self, platforms, rules)
        )

    def module_with(self, attributes: EntryAttributes | None) -> ir.Module:
        """Returns the module, with layouts and memories where a launch names some."""
        return self.module if attributes is None else attributes.add_to(self.module)

    def program_at(
        self, version: Version | None, attributes: EntryAttributes | None = None
    ) -> Program:
        """Returns the program as a portable artifact that a reader of ``version`` takes."""
        code = self._artifacts.get((version, attributes))
        if code is None:
            with record_stage(monitoring.LOWER, self.plan.name):
                module = self.module_with(attributes)
                code = self._artifacts[version, attributes] = portable_artifact(module, version)
        return Program(code, "mlir", self.plan.name, self.callbacks)

    @cached_property
    def bytecode(self) -> bytes:
        """The module as it was traced, as MLIR bytecode: for another trace, or a platform."""
        return bytecode(self.module) if self.source is None else self.source

    @cached_property
    def text(self) -> str:
        """The module as StableHLO text."""
        return str(self.module)


class _Finished(TypedDict):
    """The fields of a `Staged` that come with the form that backends take."""

    callbacks: Mapping[int, HostCallback]
    source: bytes | None
    ordered: bool


def make_parameters(
    types: Sequence[ParameterType], names: Sequence[str], donated: frozenset[int] = frozenset()
) -> list[Parameter]:
    """Returns the parameters of a function that is staged for arguments of these types."""
    return [
        Parameter(TensorType(shape, dtype), weak, name, i in donated)
        for i, ((shape, dtype, weak), name) in enumerate(zip(types, names, strict=True))
    ]


def stage(
    function: Callable[..., Any],
    parameters: Sequence[Parameter],
    *,
    name: str,
    axes: Mapping[str, int] | None = None,
    mesh: AbstractMesh | None = None,
    keep_unused: bool = False,
    forward: bool = True,
) -> Staged:
    """Calls ``function`` with one tracer for each parameter and returns what it traced.

    ``axes`` are axis names bound for collectives, ``mesh`` the one that they are of. What no output
    and no effect depends on is left out, parameters among it unless ``keep_unused``; outputs that
    are arguments or what the function closed over bypass the program if ``forward``.
    Raises what the function raises, and `NotAnArray` with the path of an output that is no array.
    """
    with record_stage(monitoring.TRACE, name):
        return _stage(function, parameters, Trace(name, axes, mesh), keep_unused, forward)


def _stage(
    function: Callable[..., Any],
    parameters: Sequence[Parameter],
    trace: Trace,
    keep_unused: bool,
    forward: bool,
) -> Staged:
    name = trace.name
    with trace:
        types = [trace.mlir_type(p.type.shape, p.type.dtype) for p in parameters]
        main = add_main(trace, name, types)
        block = main.add_entry_block([ir.Location.name(p.name or "arg") for p in parameters])
        with trace.inside(block, isolated=True):
            outputs, out_tree = _fill_block(function, parameters, trace, block, name)
        remove_dead_code(trace.module, block)
        kinds = tuple(output.memory_kind for output in outputs)
        placed = {i for i, kind in enumerate(kinds) if kind is not None}
        sources, results, literals = route_outputs(trace, block, parameters, forward, placed)
        types_of_results = [TensorType(outputs[i].shape, outputs[i].dtype) for i in results]
        kept = prune(block, parameters, keep_unused)
        constants, fed = prune_constants(trace, block, len(kept), sources)
        warn_of_constants(constants[:fed], name)
        donated = alias_donated(main, parameters, kept, types_of_results, name)
        set_type(main, block)
        name_results(main, len(results))
        if trace.functions:
            drop_uncalled(trace.module)
        finished = _finish(trace.module, name, trace.callbacks, trace.uses_chlo)
    plan = Plan(
        name=name,
        kept=tuple(kept),
        sources=tuple(sources),
        constants=tuple(constants),
        fed=fed,
        literals=tuple(literals),
        donated=tuple(donated),
        argument_names=tuple(p.name for p in parameters),
        acts=not results and has_effects(block),
    )
    return Staged(
        plan,
        trace.module,
        tuple(parameters),
        tuple(types_of_results),
        tuple(TensorType(o.shape, o.dtype) for o in outputs),
        tuple(o.weak for o in outputs),
        out_tree,
        kinds if placed else (),
        claims=tuple(trace.claims),
        uses_chlo=trace.uses_chlo,
        asks_platform=trace.asks_platform,
        **finished,
    )


def _finish(
    module: ir.Module,
    name: str,
    callbacks: Mapping[int, HostCallback],
    uses_chlo: bool,
    rules: Rules = (),
) -> _Finished:
    """Makes of a module as it was traced what backends take: in place, and it is verified.

    CHLO's operations become StableHLO's, operations that have ``rules`` what those give, and
    ordered calls of Python functions get their tokens.
    """
    source = bytecode(module) if uses_chlo else None
    called = dict(callbacks)
    if rules:
        called |= lower_operations(module, name, rules, uses_chlo)
    elif uses_chlo:
        legalize_chlo(module)
    numbers = {callback_number(call) for call in host_callbacks(module)} if called else set()
    block = functions_by_name(module)["main"].entry_block
    ordered = bool(numbers) and has_ordered(module, block)
    if ordered:
        source = source or bytecode(module)
        order_callbacks(module, block)
    _verify(module, name)
    used = {n: called[n] for n in sorted(numbers)}
    return {"callbacks": used, "source": source, "ordered": ordered}


def _lower(staged: Staged, platforms: Sequence[str], rules: Rules) -> Staged:
    """Returns a trace for a platform; see `Staged.lowered_for`."""
    name = staged.plan.name
    module = parse(staged.bytecode, name)
    with module.context, ir.Location.unknown():
        if staged.asks_platform:
            resolve_platforms(module, platforms, name)
        finished = _finish(module, name, staged.callbacks, staged.uses_chlo, rules)
        drop_uncalled(module)
    return replace(
        staged,
        module=module,
        asks_platform=False,
        loaded=BoundedCache(64),
        _artifacts={},
        _lowered=BoundedCache(1),
        **finished,
    )


def _verify(module: ir.Module, name: str) -> None:
    """Raises `TracingError` for a module that is not valid: an operation let an argument pass."""
    try:
        module.operation.verify()
    except MLIRError as error:
        said = "; ".join(str(d.message) for d in error.error_diagnostics) or str(error)
        raise TracingError(f"the trace of {name!r} is not valid StableHLO: {said}") from error


def _fill_block(
    function: Callable[..., Any],
    parameters: Sequence[Parameter],
    trace: Trace,
    block: ir.Block,
    name: str,
) -> tuple[list[Tracer], tree.PyTreeSpec]:
    """Calls the function on the arguments of the block, which then returns its flat outputs."""
    tracers = [
        Tracer(v, trace, weak=p.weak, origin=p.name and f"argument {p.name} of {name!r}")
        for v, p in zip(block.arguments, parameters, strict=True)
    ]
    leaves, out_tree = tree.flatten(function(*tracers))
    if any(type(leaf) not in (Tracer, Array) for leaf in leaves):
        _check_outputs(tree.unflatten(out_tree, leaves), name)
    outputs = [as_tracer(leaf) for leaf in leaves]
    func.ReturnOp([output.value for output in outputs], loc=trace.location())
    return outputs, out_tree


def _check_outputs(out: Any, name: str) -> None:
    for path, leaf in tree.flatten_with_paths(out):
        try:
            as_tracer(leaf)
        except NotAnArray as error:
            raise NotAnArray(
                f"{name!r} returned{f' at {path}' if path else ''} {leaf!r} of type "
                f"{type(leaf).__module__}.{type(leaf).__qualname__}, which is not an array; "
                "functions that are traced return arrays, scalars and pytrees of them"
            ) from error
