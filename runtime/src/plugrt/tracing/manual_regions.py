"""`manual_region`: a part of a program that is written for one device of a mesh."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from plugrt.execution.placement.device_claims import Claim
from plugrt.execution.shardings.abstract_mesh import AbstractMesh, AxisType
from plugrt.execution.shardings.gspmd_sharding import buffer_sharding
from plugrt.execution.shardings.manual_types import NO_MAT, mat_of, with_mat
from plugrt.execution.shardings.named_sharding import NamedSharding, explicit_part
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.shardings.shardy_text import sharding_body
from plugrt.execution.trees import pytrees
from plugrt.stablehlo.bindings import ir, register_shardy, shardy
from plugrt.stablehlo.regions import inline_block
from plugrt.tracing.sharding_types import ShardingTypes
from plugrt.tracing.trace import Scope, Trace
from plugrt.tracing.tracer import Tracer

Specs = Sequence[PartitionSpec]


def manual_region(
    trace: Trace,
    mesh: AbstractMesh,
    names: Sequence[str],
    operands: Sequence[Tracer],
    in_specs: Specs,
    body: Callable[..., tuple[object, Specs]],
    claim: Claim | None = None,
    checks: bool | None = None,
) -> Any:
    """Adds an ``sdy.manual_computation`` over axes of a mesh and returns its results, a pytree.

    ``body`` is called with a tracer for each operand's part on one device, and returns a pytree of
    tracers, the parts of the results, and the spec of each. Values captured from outside are
    replicated. ``claim`` names the mesh's devices; with ``checks`` the types of the parts record
    how they differ along the axes, by default as in the surrounding scope.

    Over a mesh of one device the parts are whole, and ``body`` is a part of the program: a program
    for one device is compiled without Shardy's partitioner, which removes such operations.
    """
    register_shardy(trace.context)
    location = trace.location()
    bound = dict.fromkeys((n for n in trace.axes if n in mesh.axis_names), AxisType.Manual)
    abstract = mesh.abstract_mesh.update_axis_types(bound if trace.mesh is not None else {})
    ins = [NamedSharding(abstract, spec) for spec in in_specs]
    parts = [
        trace.mlir_type(s.shard_shape(x.shape), x.dtype) for s, x in zip(ins, operands, strict=True)
    ]
    holder = ir.Operation.create("builtin.unrealized_conversion_cast", regions=1, loc=location)
    block = ir.Block.create_at_start(holder.regions[0], parts, [location] * len(parts))

    around = trace.types
    typed = ShardingTypes(abstract) if around is None and checks else around
    if typed is not None:
        inner = typed.mesh.update_axis_types(dict.fromkeys(names, AxisType.Manual))
        with typed.within(inner, checks):
            for argument, x, spec in zip(block.arguments, operands, in_specs, strict=True):
                whole = typed.of(x.value, x.ndim)
                mat = mat_of(whole) if typed.checks else NO_MAT
                for state in ("unreduced", "reduced") if typed.checks else ():
                    mat = mat.moved(getattr(whole.spec, state).intersection(names), state)
                mat = mat.moved(spec.axis_names if typed.checks else (), "varying")
                typed.set(argument, with_mat(explicit_part(inner, whole.spec, x.ndim), mat))

    def build(scope: Scope) -> tuple[list[Any], object, Specs, list[Any]]:
        values = zip(block.arguments, operands, strict=True)
        with typed.within(inner, checks) if typed is not None else nullcontext():
            returned, out_specs = body(*[Tracer(value, trace, weak=x.weak) for value, x in values])
        results, structure = pytrees.flatten(returned)
        shardy().ReturnOp([x.value for x in results], loc=location)
        return results, structure, out_specs, [tracer for tracer, _ in scope.captured.values()]

    trace.types = typed
    try:
        results, structure, out_specs, captured = trace.run_inside(block, build, isolated=True)
    finally:
        trace.types = around
    # Values from outside became parameters of the block, in the order of their first use.
    taken = [*operands, *captured]
    if mesh.size == 1:
        made = inline_block(block, [x.value for x in taken])
        holder.erase()
        if claim and not made:
            trace.claims.add(claim)
        if claim:
            made = [trace.claims.add_to_value(value, claim, location) for value in made]
        return _results(trace, names, structure, made, results, out_specs)
    ins += [NamedSharding(abstract, PartitionSpec())] * (len(taken) - len(operands))
    for i in reversed(range(len(taken))):
        if not any(True for _ in block.arguments[i].uses):
            block.erase_argument(i)
            del taken[i], ins[i]
    if not taken and not results:  # Shardy finds the mesh at an argument or result
        taken = [Tracer.from_literal(trace, 0, np.dtype(np.int32))]
        block.add_argument(taken[0].value.type, location)
        ins = [NamedSharding(abstract, PartitionSpec())]
    outs = [NamedSharding(abstract, spec) for spec in out_specs]
    is_open = len(names) < len(mesh.axis_names)
    axes = ", ".join(map(json.dumps, names))
    types = [
        trace.mlir_type(s.whole_shape(x.shape), x.dtype) for s, x in zip(outs, results, strict=True)
    ]
    made = shardy().ManualComputationOp(
        types,
        [x.value for x in taken],
        _write_per_value(trace, ins, taken, is_open),
        _write_per_value(trace, outs, results, is_open),
        ir.Attribute.parse(f"#sdy<manual_axes{{{axes}}}>", trace.context),
        loc=location,
    )
    trace.claims.add_to(made.operation, [claim] if claim else [])
    block.append_to(made.operation.regions[0])
    holder.erase()
    return _results(trace, names, structure, made.operation.results, results, out_specs)


def _results(
    trace: Trace,
    names: Sequence[str],
    structure: Any,
    values: Sequence[ir.Value],
    parts: Sequence[Tracer],
    specs: Specs,
) -> Any:
    """Returns the pytree of results, each weak if its part on one device is.

    Each has the type of the part, with the axes of its spec.
    """
    tracers = [Tracer(value, trace, weak=x.weak) for value, x in zip(values, parts, strict=True)]
    types = trace.types
    if types is not None:
        for made, part, spec in zip(tracers, parts, specs, strict=True):
            own = types.of(part._value, part.ndim)
            entries = [(*spec.axes_of(i), *own.spec.axes_of(i)) for i in range(part.ndim)]
            whole = explicit_part(types.mesh, spec.update(partitions=entries), part.ndim)
            types.set(made.value, with_mat(whole, mat_of(own).moved(names, "invarying")))
    return pytrees.unflatten(structure, tracers)


def _write_per_value(
    trace: Trace, shardings: Sequence[NamedSharding], values: Sequence[Tracer], is_open: bool
) -> ir.Attribute:
    bodies = ", ".join(
        f"<{sharding_body(*buffer_sharding(sharding, x.shape, x.dtype), is_open)}>"
        for sharding, x in zip(shardings, values, strict=True)
    )
    return ir.Attribute.parse(f"#sdy.sharding_per_value<[{bodies}]>", trace.context)
