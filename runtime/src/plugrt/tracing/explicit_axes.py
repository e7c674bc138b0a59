"""`read_sharding`, `call_with_types`: the types of traced arrays over Explicit axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plugrt.errors import ArgumentTypeError, InvalidArgument
from plugrt.execution.shardings import mesh_context
from plugrt.execution.shardings.abstract_mesh import AbstractMesh, AxisType
from plugrt.execution.shardings.named_sharding import NamedSharding, explicit_part
from plugrt.execution.shardings.partition_spec import AxisName, PartitionSpec
from plugrt.execution.trees import pytrees
from plugrt.execution.trees.tree_prefixes import spread_prefix
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import active_trace
from plugrt.tracing.trace import Trace
from plugrt.tracing.tracer import Tracer


def mesh_around(trace: Trace | None) -> AbstractMesh | None:
    """Returns the current mesh of a trace, else the mesh in the context, else None."""
    if trace is not None and trace.types is not None:
        return trace.types.mesh
    return mesh_context.current().programs


def read_sharding(
    given: object, what: str, trace: Trace | None, any_mesh: bool = False
) -> NamedSharding:
    """Returns the sharding that an argument such as ``out_sharding=`` states, over Explicit axes.

    Raises `InvalidArgument` for a spec without a mesh, a mesh other than the current one, and axes
    that are not Explicit.
    """
    around = mesh_around(trace)
    if isinstance(given, PartitionSpec):
        if around is None:
            raise InvalidArgument(
                f"{what} has {given!r} alone, and there is no mesh in the context: call it within "
                f"plugrt.set_mesh(mesh), or give NamedSharding(mesh, {given!r})"
            )
        given = NamedSharding(around, given)
    if not isinstance(given, NamedSharding):
        raise ArgumentTypeError(
            f"{what} takes a NamedSharding or a PartitionSpec; got {type(given).__name__} "
            f"{given!r:.80}"
        )
    if given.memory_kind is not None:
        raise InvalidArgument(f"{what} has {given!r}: types have no memory; device_put moves")
    if around is not None and around.abstract_mesh == given.mesh:  # adds devices
        given = NamedSharding(around, given.spec)
    elif around is not None and around.abstract_mesh != given.mesh.abstract_mesh and not any_mesh:
        raise InvalidArgument(
            f"{what} is over {given.mesh.brief}, and the mesh around it is {around.brief}"
        )
    others = [n for n in given.spec.axis_names if n not in given.mesh.explicit_axes]
    if others:
        raise InvalidArgument(
            f"{what} has {given.spec!r} over {given.mesh.brief}, where {others[0]!r} is not "
            "Explicit: with_sharding_constraint divides over Auto axes"
        )
    return given


def call_with_types(
    function: Callable[[Any], Any],
    operands: Any,
    mesh: AbstractMesh,
    axes: Sequence[AxisName],
    kind: AxisType,
    ins: object,
    outs: object,
    what: str,
) -> Any:
    """Returns the results of a function that is traced with some axes as Auto or as Explicit.

    ``operands`` and results are resharded to ``ins`` and ``outs``, pytree prefixes of shardings;
    None keeps a sharding.
    """
    trace = active_trace()
    types = trace.typed_over(mesh)
    inner = mesh.abstract_mesh.update_axis_types(dict.fromkeys(axes, kind))
    with types.within(inner):
        returned = function(_divide(trace, operands, ins, inner, what))
        results, structure = pytrees.flatten(returned)
        returned = pytrees.unflatten(structure, [as_tracer(x) for x in results])
    with types.within(mesh.abstract_mesh):
        return _divide(trace, returned, outs, types.mesh, what)


def _divide(trace: Trace, values: Any, shardings: object, mesh: AbstractMesh, what: str) -> Any:
    """Returns values with types over a mesh: the given shardings, else the values' own."""
    leaves, structure = pytrees.flatten(values)
    types = trace.typed_over(mesh)
    given: Sequence[Any] = [None] * len(leaves)
    if shardings is not None:
        given = spread_prefix(shardings, values, f"{what}'s shardings", "the values")
    made: list[object] = []
    for leaf, one in zip(leaves, given, strict=True):
        x = as_tracer(leaf)
        if one is None:
            before = x.sharding_type
            spec = PartitionSpec() if before is None else before.spec
            sharding = explicit_part(mesh, spec, x.ndim)
            if before != sharding and x.scalar is None:
                value = types.constrained(x.value, sharding, sharding, trace.location())
                x = Tracer(value, trace, weak=x.weak, origin=x.origin)
        else:
            x = x.constrained(read_sharding(one, what, trace), what)
        made.append(x)
    return pytrees.unflatten(structure, made)
