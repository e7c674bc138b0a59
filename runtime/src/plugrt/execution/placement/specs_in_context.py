"""`name_in_context`: resolves a bare `PartitionSpec` over the mesh in the context."""

from __future__ import annotations

from typing import Any

from plugrt.errors import InvalidArgument
from plugrt.execution.placement.device_claims import Claim
from plugrt.execution.shardings import mesh_context
from plugrt.execution.shardings.abstract_mesh import AbstractMesh
from plugrt.execution.shardings.mesh import Mesh
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.shardings.partition_spec import PartitionSpec


def name_in_context(target: object, what: str) -> Any:
    """Returns the `NamedSharding` of a spec over the mesh in the context; others unchanged.

    ``what`` names the argument. Raises `InvalidArgument` if there is no mesh, and for an axis that
    it lacks.
    """
    if not isinstance(target, PartitionSpec):
        return target
    mesh = require_mesh(f"{what} has {target!r} alone", f"NamedSharding(mesh, {target!r})")
    unknown = [name for name in target.axis_names if name not in mesh.axis_names]
    if unknown:
        raise InvalidArgument(
            f"{what} names the axis {unknown[0]!r} in {target!r}; the mesh in the context is "
            f"{mesh.brief}"
        )
    return NamedSharding(mesh, target)


def require_mesh(what: str, instead: str) -> Mesh:
    """Returns the mesh in the context; without one raises `InvalidArgument`, with a cure."""
    mesh = mesh_context.current().specs
    if isinstance(mesh, Mesh):
        return mesh
    raise InvalidArgument(
        f"{what}, and there is no mesh in the context: call it within plugrt.set_mesh(mesh), or "
        f"give {instead}"
    )


def context_claim(mesh: AbstractMesh | None = None) -> Claim | None:
    """Returns the claim of a mesh in the context, by default `plugrt.set_mesh`'s."""
    how = "plugrt.set_mesh" if mesh is None else "with mesh:"
    mesh = mesh or mesh_context.current().programs
    if not isinstance(mesh, Mesh):
        return None
    return Claim(
        mesh.flat_devices,
        lambda: f"the mesh in the context ({how}), {mesh.brief},",
        NamedSharding(mesh, PartitionSpec()),
    )
