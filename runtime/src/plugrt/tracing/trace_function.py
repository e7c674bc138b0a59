"""`stage`: traces a Python function to a StableHLO module and a `Plan` of its calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from plugrt import monitoring
from plugrt.errors import NotAnArray, ShardingTypeError
from plugrt.execution.arrays.arguments import TracedType
from plugrt.execution.arrays.array import Array
from plugrt.execution.launches.replica_launch import InnerPmap
from plugrt.execution.placement.device_claims import Claim
from plugrt.execution.placement.launch_shardings import AskedShardings
from plugrt.execution.placement.plan import Plan
from plugrt.execution.shardings import mesh_context
from plugrt.execution.shardings.abstract_mesh import AbstractMesh
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.trees import pytrees
from plugrt.interface import TensorType
from plugrt.monitoring.stage_events import record_stage
from plugrt.stablehlo.bindings import func, ir
from plugrt.stablehlo.dead_code import remove_dead_code
from plugrt.stablehlo.entry_attributes import set_counts
from plugrt.stablehlo.passes import drop_uncalled
from plugrt.stablehlo.refusals import DEEPEST_CALLS, refuse_calls
from plugrt.stablehlo.shardings import drop_constraints
from plugrt.stablehlo.types import drop_casts
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
from plugrt.tracing.finished_module import finish_module
from plugrt.tracing.mapped_axes import AxisKey
from plugrt.tracing.sharding_types import ShardingTypes
from plugrt.tracing.staged import Staged
from plugrt.tracing.trace import Trace, current_trace
from plugrt.tracing.tracer import Tracer


def make_parameters(
    types: Sequence[TracedType], names: Sequence[str], donated: frozenset[int] = frozenset()
) -> list[Parameter]:
    """Returns the parameters of a function that is staged for arguments of these types."""
    return [
        Parameter(TensorType(shape, dtype), weak, name, i in donated, sharding)
        for i, ((shape, dtype, weak, sharding), name) in enumerate(zip(types, names, strict=True))
    ]


def stage(
    function: Callable[..., object],
    parameters: Sequence[Parameter],
    *,
    name: str,
    axes: Mapping[AxisKey, int] | None = None,
    mesh: AbstractMesh | None = None,
    keep_unused: bool = False,
    forward: bool = True,
) -> Staged:
    """Calls ``function`` with one tracer for each parameter and returns the trace.

    ``axes`` are axis names bound for collectives, ``mesh`` is their mesh. Removes operations on
    which no output and no effect depends, and such parameters unless ``keep_unused``; if
    ``forward``, outputs that are arguments or captured values bypass the program. Raises the
    function's own exceptions, and `NotAnArray` with the path of an output that is no array.
    """
    with record_stage(monitoring.TRACE, name):
        trace = Trace(name, axes, mesh)
        trace.types = _start_types([p.sharding for p in parameters], bool(axes))
        return trace.run(lambda: _stage(function, parameters, trace, keep_unused, forward))


def _start_types(
    shardings: Sequence[NamedSharding | None], is_inside: bool
) -> ShardingTypes | None:
    """Returns the types of values of a new trace; None if it needs none.

    The mesh is the parameters', else the surrounding trace's, else the context's. ``is_inside``
    states whether axes of a surrounding trace are bound.
    """
    outer = current_trace() if is_inside else None
    checks = outer is not None and outer.types is not None and outer.types.checks
    meshes = {sharding.mesh for sharding in shardings if sharding is not None}
    if len(meshes) > 1:
        raise ShardingTypeError(f"the arguments are over different meshes: {meshes}")
    if meshes:
        return ShardingTypes(meshes.pop(), checks)
    around = current_trace()
    if around is not None:
        mesh = around.types and around.types.mesh
    else:
        mesh = mesh_context.current().programs
    if not mesh or not (mesh.explicit_axes or checks):
        return None
    return ShardingTypes(mesh.abstract_mesh, checks)


def _stage(
    function: Callable[..., object],
    parameters: Sequence[Parameter],
    trace: Trace,
    keep_unused: bool,
    forward: bool,
) -> Staged:
    name = trace.name
    types = [trace.mlir_type(p.type.shape, p.type.dtype) for p in parameters]
    main = add_main(trace, name, types)
    block = main.add_entry_block([ir.Location.name(p.name or "arg") for p in parameters])
    outputs, out_tree = trace.run_inside(
        block, lambda _: _fill_block(function, parameters, trace, block, name), isolated=True
    )
    remove_dead_code(trace.module, block)
    kinds = tuple([output.memory_kind for output in outputs])
    placed = {i for i, kind in enumerate(kinds) if kind is not None}
    output_types = [TensorType(output.shape, output.dtype) for output in outputs]
    sources, results, literals = route_outputs(trace, block, parameters, forward, placed)
    kept = prune(block, parameters, keep_unused)
    constants, fed = prune_constants(trace, block, len(kept), sources)
    warn_of_constants(constants[:fed], name)
    types_of_results = [output_types[i] for i in results]
    known = [i for i, (origin, _) in enumerate(sources) if origin != "result"]
    stated = [output_types[i] for i in known]
    donated, unpaired = alias_donated(main, parameters, kept, types_of_results, stated)
    set_type(main, block)
    name_results(main, len(results))
    if trace.inner_count:
        drop_uncalled(trace.module)
        if len(trace.module.body.operations) > DEEPEST_CALLS:
            refuse_calls(trace.module, name)
    marks = trace.claims.left(trace.module)
    if trace.types is not None and trace.types.mesh.size == 1:
        drop_constraints(trace.module)
    pmaps = tuple([mark for mark in marks if isinstance(mark, InnerPmap)])
    replicas = math.lcm(trace.replicas, *[pmap.replicas for pmap in pmaps])
    # For readers of the text, as in JAX's programs; a launch over devices sets ``partitions``.
    set_counts(trace.module, replicas=replicas, partitions=1)
    numbered = replicas if trace.numbers_replicas else 0
    typed: tuple[NamedSharding | None, ...] = ()
    if trace.types is not None:
        typed = tuple([output.sharding_type for output in outputs])
        if trace.asked is None:
            asked = tuple(
                one.left_open()
                if one and one.mesh.explicit_axes and origin in ("result", "literal")
                else None
                for one, (origin, _) in zip(typed, sources, strict=True)
            )
            trace.asked = AskedShardings((None,) * len(parameters), asked, from_program=True)
    if trace.has_casts:
        drop_casts(trace.module)
    finished = finish_module(
        *(trace.module, name, trace.callbacks, trace.uses_chlo, numbered, bool(marks)),
        has_keys=trace.has_keys,
    )
    plan = Plan(
        name=name,
        kept=tuple(kept),
        sources=tuple(sources),
        constants=tuple(constants),
        fed=fed,
        literals=tuple(literals),
        donated=tuple(donated),
        unpaired=tuple(unpaired),
        argument_names=tuple([p.name for p in parameters]),
        acts=not results and has_effects(block),
        reads=tuple(trace.reads),
    )
    return Staged(
        plan,
        trace.module,
        tuple(parameters),
        tuple(types_of_results),
        tuple(output_types),
        tuple([output.weak for output in outputs]),
        out_tree,
        kinds if placed else (),
        marks=marks,
        claims=tuple([mark for mark in marks if isinstance(mark, Claim)]),
        pmaps=pmaps,
        asked=trace.asked,
        out_shardings=typed,
        replicas=replicas,
        numbers_replicas=trace.numbers_replicas,
        uses_chlo=trace.uses_chlo,
        has_keys=trace.has_keys,
        asks_platform=trace.asks_platform,
        **finished,
    )


def _fill_block(
    function: Callable[..., object],
    parameters: Sequence[Parameter],
    trace: Trace,
    block: ir.Block,
    name: str,
) -> tuple[list[Tracer], pytrees.PyTreeSpec]:
    """Calls the function on the arguments of the block, which then returns its flat outputs."""
    if trace.types is not None:
        for value, parameter in zip(block.arguments, parameters, strict=True):
            trace.types.set(value, parameter.sharding)
    tracers = [
        Tracer(v, trace, weak=p.weak, origin=p.name and f"argument {p.name} of {name!r}")
        for v, p in zip(block.arguments, parameters, strict=True)
    ]
    outputs, out_tree = flatten_outputs(function(*tracers), name)
    func.ReturnOp([*map(trace.mlir_value, outputs)], loc=trace.location())
    return outputs, out_tree


def flatten_outputs(returned: object, name: str) -> tuple[list[Tracer], pytrees.PyTreeSpec]:
    """Returns what a traced function returned as tracers, and their structure.

    Raises `NotAnArray` with the path of an output that is no array.
    """
    if type(returned) is Tracer:
        return [returned], pytrees.LEAF
    leaves, out_tree = pytrees.flatten(returned)
    if any(type(leaf) not in (Tracer, Array) for leaf in leaves):
        _check_outputs(pytrees.unflatten(out_tree, leaves), name)
    return [x if type(x) is Tracer else as_tracer(x) for x in leaves], out_tree


def _check_outputs(out: object, name: str) -> None:
    for path, leaf in pytrees.flatten_with_paths(out):
        try:
            as_tracer(leaf)
        except NotAnArray as error:
            raise NotAnArray(
                f"{name!r} returned{f' at {path}' if path else ''} {leaf!r} of type "
                f"{type(leaf).__module__}.{type(leaf).__qualname__}, which is not an array; "
                "functions that are traced return arrays, scalars and pytrees of them"
            ) from error
