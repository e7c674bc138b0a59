"""`reshard`, `auto_axes`, `explicit_axes`: shardings in the types of arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from plugrt.errors import ArgumentTypeError, InvalidArgument, Unimplemented
from plugrt.execution.arrays.array import Array
from plugrt.execution.shardings import mesh_context
from plugrt.execution.shardings.abstract_mesh import AbstractMesh, AxisType
from plugrt.execution.shardings.mesh import Mesh
from plugrt.execution.shardings.named_sharding import NamedSharding, explicit_part
from plugrt.execution.shardings.partition_spec import AxisName
from plugrt.execution.transfers.transfer import device_put
from plugrt.execution.trees import pytrees
from plugrt.execution.trees.tree_prefixes import spread_prefix
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.lax.control_flow.eager import launch
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.explicit_axes import call_with_types, mesh_around, read_sharding
from plugrt.tracing.trace import Trace, current_trace
from plugrt.tracing.tracer import Tracer

T = TypeVar("T")


@with_argument_errors
def reshard(x: T, out_shardings: object) -> T:
    """Returns a pytree of arrays with the shardings ``out_shardings``, over Explicit axes.

    ``out_shardings`` is a `PartitionSpec`, over the mesh in the context, a `NamedSharding`, or a
    pytree prefix of ``x`` of them. Within a traced function it changes the type of a value. As
    ``jax.sharding.reshard``. Raises `InvalidArgument` for axes that are not Explicit, and
    `ShapeError` where a shape does not divide.

    >>> from plugrt.sharding import AxisType, PartitionSpec as P
    >>> with plugrt.set_mesh(plugrt.make_mesh((4,), ("x",), (AxisType.Explicit,))):
    ...     plugrt.sharding.reshard(np.ones(8), P("x")).sharding.spec
    P('x',)
    """
    trace = current_trace()
    leaves, structure = pytrees.flatten(x)
    given = spread_prefix(out_shardings, x, "reshard's out_shardings", "x")
    made: list[object] = []
    for leaf, one in zip(leaves, given, strict=True):
        sharding = read_sharding(one, "reshard", trace, any_mesh=True)
        if trace is not None:
            made.append(_retype(trace, as_tracer(leaf), sharding))
        else:
            made.append(device_put(leaf, _over_mesh(leaf, sharding)))
    resharded: T = pytrees.unflatten(structure, made)
    return resharded


def _retype(trace: Trace, x: Tracer, sharding: NamedSharding) -> Tracer:
    """Returns a traced value with a sharding in its type; over Auto axes only as a constraint."""
    if sharding.mesh.explicit_axes or trace.types is None:
        return x.constrained(sharding, "reshard")
    made = trace.types.constrained(x.value, sharding, sharding, trace.location())
    return Tracer(made, trace, weak=x.weak, origin=x.origin)


def _over_mesh(x: Any, sharding: NamedSharding) -> NamedSharding:
    """Returns the sharding over the devices of the context, or else of the array."""
    mesh = sharding.mesh
    if not isinstance(mesh, Mesh):
        candidates = [mesh_context.current().programs]
        if isinstance(x, Array) and isinstance(x.sharding, NamedSharding):
            candidates.append(x.sharding.mesh)
        found = [m for m in candidates if isinstance(m, Mesh) and m.abstract_mesh == mesh]
        if not found:
            raise InvalidArgument(f"reshard to {sharding!r}, which names no devices: give a Mesh")
        mesh = found[0]
    ndim = len(getattr(x, "shape", ()))
    return NamedSharding(mesh, explicit_part(mesh, sharding.spec, ndim).spec)


def auto_axes(
    f: Any = None,
    /,
    *,
    axes: AxisName | Iterable[AxisName] | None = None,
    out_sharding: object = None,
) -> Any:
    """Returns a function that runs over Auto axes of the mesh: the compiler shards its values.

    ``axes`` are names of axes, by default all. ``out_sharding``, given here or at the call, is the
    sharding of the results. As ``jax.sharding.auto_axes``. Calls raise `ArgumentTypeError` without
    ``out_sharding``, `InvalidArgument` where the shardings are over another mesh than the one in
    the context, and `Unimplemented` for axes that are Manual.
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)
    return _retyped(f, axes, AxisType.Auto, "out_sharding", out_sharding)


def explicit_axes(
    f: Any = None,
    /,
    *,
    axes: AxisName | Iterable[AxisName] | None = None,
    in_sharding: object = None,
) -> Any:
    """Returns a function that runs over Explicit axes of the mesh.

    ``axes`` are names of axes, by default all. ``in_sharding``, given here or at the call, is the
    sharding of the arguments in it. As ``jax.sharding.explicit_axes``. Calls raise as for
    `auto_axes`, and `InvalidArgument` without a mesh.
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    return _retyped(f, axes, AxisType.Explicit, "in_sharding", in_sharding)


@with_argument_errors
@contextmanager
def use_abstract_mesh(mesh: AbstractMesh) -> Iterator[None]:
    """Context manager: sets the mesh of the calls within it, without devices.

    In a traced function the types of new values are over it: `reshard` changes older ones. As
    ``jax.sharding.use_abstract_mesh``. Raises `ArgumentTypeError` for another object than a
    mesh, and `InvalidArgument` for one of another number of devices than the mesh around.
    """
    if not isinstance(mesh, AbstractMesh):
        raise ArgumentTypeError(f"use_abstract_mesh takes an AbstractMesh; got {mesh!r:.80}")
    mesh, trace = mesh.abstract_mesh, current_trace()
    around = mesh_around(trace)
    if around is not None and around.size and mesh.size and around.size != mesh.size:
        raise InvalidArgument(
            f"use_abstract_mesh cannot change the size of the mesh: it is {around!r}, got {mesh!r}"
        )
    if trace is None:
        context = replace(mesh_context.current(), specs=mesh, programs=mesh)
        with mesh_context.surround(context):
            yield
        return
    with trace.typed_over(around or mesh).within(mesh):
        yield


def _retyped(
    f: Callable[..., Any], axes: Any, kind: AxisType, named: str, stated: object
) -> Callable[..., Any]:
    what = "auto_axes" if kind is AxisType.Auto else "explicit_axes"

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        sharding = stated
        if sharding is None:
            if named not in kwargs:
                raise ArgumentTypeError(f"{what} needs {named}=, where it is made or called")
            sharding = kwargs.pop(named)
        mesh = _find_mesh(sharding, what)
        if mesh is None:
            if kind is AxisType.Explicit:
                raise InvalidArgument(f"{what} needs a mesh in the context: plugrt.set_mesh(mesh)")
            return f(*args, **kwargs)
        names = (axes,) if isinstance(axes, str) else tuple(axes or mesh.axis_names)
        if manual := [name for name in names if name in mesh.manual_axes]:
            raise Unimplemented(
                f"{what} over the axis {manual[0]!r}, which is Manual within this shard_map, is "
                "not implemented: call it outside, or over the other axes"
            )
        if kind is AxisType.Auto and {*mesh.auto_axes} == {*names}:
            return f(*args, **kwargs)
        ins, outs = (None, sharding) if kind is AxisType.Auto else (sharding, None)

        def body(operands: Any) -> Any:
            return call_with_types(
                lambda given: f(*given, **kwargs), operands, mesh, names, kind, ins, outs, what
            )

        if current_trace() is not None:
            return body(args)
        return launch(what, (f,), (), {"operands": args}, body, reads_once=False)

    return call


def _find_mesh(sharding: object, what: str) -> AbstractMesh | None:
    """Returns the mesh of the context, else the one of shardings, or None."""
    around = mesh_around(current_trace())
    leaves = pytrees.flatten_with_none(sharding)[0]
    stated = {s.mesh for s in leaves if isinstance(s, NamedSharding)}
    if len({mesh.abstract_mesh for mesh in stated}) > 1:
        raise InvalidArgument(f"the shardings given to {what} are over different meshes: {stated}")
    if not stated:
        return around
    mesh = stated.pop()
    if around is not None and around.abstract_mesh != mesh.abstract_mesh:
        raise InvalidArgument(
            f"{what} over {mesh.brief}, where the mesh in the context is {around.brief}"
        )
    return mesh if around is None else around
