"""`set_mesh`, `use_mesh`: a mesh for the calls of a thread; `get_mesh`, `get_abstract_mesh`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from plugrt.errors import ArgumentError, ArgumentTypeError
from plugrt.execution.shardings import mesh_context
from plugrt.execution.shardings.abstract_mesh import AbstractMesh, AxisType
from plugrt.execution.shardings.mesh import Mesh
from plugrt.execution.shardings.mesh_context import MeshContext
from plugrt.execution.transfers.tree_puts import lift
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.lifetime.interruptions import Scope

_NO_MESH = AbstractMesh((), ())


class set_mesh(Scope):  # users call it as a function, as in JAX
    """Sets the mesh of this thread's calls: from now on, or for a ``with`` block.

    Calls without an explicit device then run on the mesh, divided over its devices: jitted
    functions, operators and functions of `plugrt.array_api`, on host data and on uncommitted
    arrays, which are replicated unless a sharding states otherwise. Committed arguments and
    shardings of other devices are refused. A `PartitionSpec` by itself means this mesh, in
    ``in_shardings`` and ``out_shardings`` of `jit`, `with_sharding_constraint` and `device_put`,
    and `shard_map` uses it by default. `pmap` has its own devices.

    None unsets it. The call itself sets the mesh, and the end of a ``with`` block restores the
    previous one, also after an exception. Other threads keep theirs. As ``jax.set_mesh``;
    `device_put` and `array_api.asarray` without a target put data on the default device,
    uncommitted, where JAX's ``asarray`` copies them to each device at once.

    Raises `ArgumentTypeError` for an object that is no mesh, `InvalidArgument` for one with
    ``Manual`` axes, and `ArgumentError` within a traced function.

    >>> from plugrt.sharding import PartitionSpec as P
    >>> with plugrt.set_mesh(plugrt.make_mesh((4,), ("x",))):
    ...     plugrt.jit(lambda v: 2 * v, in_shardings=P("x"))(np.ones(8)).sharding.spec
    P('x',)
    """

    __slots__ = ("_before",)

    @with_argument_errors
    def __init__(self, mesh: Mesh | None) -> None:
        self._before = mesh_context.swap(_context_of(mesh, "set_mesh"))

    def _surround(self) -> Iterator[None]:
        with mesh_context.surround(mesh_context.current(), (self._before,)):
            yield


@with_argument_errors
def use_mesh(mesh: Mesh | None) -> AbstractContextManager[None]:
    """`plugrt.set_mesh` for a ``with`` block alone: the call by itself does nothing.

    JAX had it under this name before 0.7. Raises what `plugrt.set_mesh` does.

    >>> with plugrt.sharding.use_mesh(plugrt.make_mesh((4,), ("x",))):
    ...     plugrt.sharding.get_mesh()
    Mesh(axis_sizes=(4,), axis_names=('x',), axis_types=(Auto,))
    """
    return mesh_context.surround(_context_of(mesh, "use_mesh"))


def _current_trace() -> Any:
    """Returns the current trace, if any, without importing its module, which needs jaxlib."""
    number = lift(0)
    return None if number is None else number.trace


def _context_of(mesh: Mesh | None, what: str) -> MeshContext:
    if mesh is not None and not isinstance(mesh, Mesh):
        raise ArgumentTypeError(f"{what} takes a Mesh, or None; got {mesh!r:.100}")
    if (trace := _current_trace()) is not None:
        raise ArgumentError(
            f"{what} was called while {trace.name!r} is traced: where a program runs is decided "
            "when it is called. Set the mesh around that call"
        )
    if mesh is not None and mesh.empty:
        mesh = None
    if mesh is not None:
        mesh.require_no_manual_axes()
    return MeshContext(mesh, mesh, mesh)


@with_argument_errors
def get_mesh() -> Mesh:
    """Returns the mesh of `plugrt.set_mesh`, or an empty one where none is set.

    As ``jax.sharding.get_mesh``. Raises `ArgumentError` within a traced function.

    >>> plugrt.sharding.get_mesh().empty
    True
    """
    if (trace := _current_trace()) is not None:
        raise ArgumentError(
            f"get_mesh was called while {trace.name!r} is traced, which has no devices; "
            "get_abstract_mesh gives the shape of the mesh"
        )
    mesh: Mesh | None = mesh_context.current().devices
    return mesh or Mesh(None, ())


@with_argument_errors
def get_abstract_mesh() -> AbstractMesh:
    """Returns the shape of this thread's mesh, which `shard_map` or `plugrt.set_mesh` has set.

    Within `shard_map` its axes are of the type ``AxisType.Manual``. Empty where there is none. As
    ``jax.sharding.get_abstract_mesh``.

    >>> plugrt.sharding.get_abstract_mesh()
    AbstractMesh((), axis_types=())
    """
    trace = _current_trace()
    if trace is not None and trace.types is not None:
        typed: AbstractMesh = trace.types.mesh
        return typed
    if trace is not None and trace.mesh is not None:
        mesh: AbstractMesh = trace.mesh
        bound = [name for name in mesh.axis_names if name in trace.axes]
        return mesh.update_axis_types(dict.fromkeys(bound, AxisType.Manual))
    return (mesh_context.current().programs or _NO_MESH).abstract_mesh
