"""What a program says of how its arguments and results lie on devices, as ``xla.OpSharding``.

JAX states shardings in Shardy's dialect: a mesh, which names the axes of the devices' grid, and for
each dimension of an array the axes that divide it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plugrt.protobuf import integer, message, varint
from plugrt.stablehlo.bindings import ir, shardy

REPLICATED = b""
"""The sharding of an array that every device has whole."""

_OTHER = 3


def main_shardings(module: ir.Module) -> tuple[list[bytes], list[bytes]] | None:
    """Returns the sharding of each parameter and of each result of ``main``.

    What carries none is `REPLICATED`. None for a module without a mesh, and for one that divides an
    axis of the mesh (``"x":(1)2``), which is not read here.
    """
    operations = list(module.body.operations)
    meshes = {op.sym_name.value: op for op in operations if op.operation.name == "sdy.mesh"}
    if not meshes:
        return None
    functions = [op for op in operations if op.operation.name == "func.func"]
    [main] = [op for op in functions if op.attributes["sym_name"].value == "main"]
    signature = main.attributes["function_type"].value
    try:
        return (
            _shardings(main, "arg_attrs", len(signature.inputs), meshes),
            _shardings(main, "res_attrs", len(signature.results), meshes),
        )
    except _DividedAxis:
        return None


class _DividedAxis(Exception):
    """A sharding by a part of an axis."""


def _shardings(main: Any, where: str, count: int, meshes: dict[str, Any]) -> list[bytes]:
    if where not in main.attributes:
        return [REPLICATED] * count
    dictionaries = [ir.DictAttr(d) for d in main.attributes[where]]
    return [_sharding(d["sdy.sharding"], meshes) if "sdy.sharding" in d else REPLICATED
            for d in dictionaries]  # fmt: skip


def _sharding(attribute: Any, meshes: dict[str, Any]) -> bytes:
    sdy = shardy()
    tensor = sdy.TensorShardingAttr(attribute)
    reference = tensor.mesh_or_ref
    named = str(reference).startswith("@")
    mesh = sdy.MeshAttr(
        meshes[ir.FlatSymbolRefAttr(reference).value].attributes["mesh"] if named else reference
    )
    sizes = {axis.name: axis.size for axis in map(sdy.MeshAxisAttr, mesh.axes)}
    dimensions = []
    for dimension in map(sdy.DimensionShardingAttr, tensor.dimension_shardings):
        axes = [sdy.AxisRefAttr(axis) for axis in dimension.axes]
        if any(axis.sub_axis_info is not None for axis in axes):
            raise _DividedAxis
        dimensions.append([axis.name for axis in axes])
    return op_sharding(sizes, dimensions, list(mesh.device_ids))


def op_sharding(
    sizes: dict[str, int], dimensions: Sequence[Sequence[str]], device_ids: Sequence[int] = ()
) -> bytes:
    """Returns the ``xla.OpSharding`` of an array whose dimensions are divided by axes of a mesh.

    ``sizes`` are those of the mesh's axes in order, ``dimensions`` the axes that divide each
    dimension, major first, and ``device_ids`` the devices of the mesh if not 0, 1, 2, …
    """
    names = list(sizes)
    used = [axis for axes in dimensions for axis in axes]
    counts = [int(np.prod([sizes[axis] for axis in axes], dtype=np.int64)) for axes in dimensions]
    if max(counts, default=1) == 1:
        return REPLICATED
    devices = np.array(device_ids or range(int(np.prod(list(sizes.values())))))
    grid = devices.reshape([sizes[name] for name in names])
    order = [names.index(axis) for axis in used]
    copies = devices.size // int(np.prod(counts))
    order += [i for i in range(len(names)) if i not in order]
    tiles = [*counts, copies] if copies > 1 else counts
    packed = b"".join(varint(int(i)) for i in grid.transpose(order).reshape(-1))
    shape = b"".join(map(varint, tiles))
    return integer(1, _OTHER) + message(3, shape) + message(4, packed) + (
        integer(6, 1) if copies > 1 else b""
    )  # fmt: skip
