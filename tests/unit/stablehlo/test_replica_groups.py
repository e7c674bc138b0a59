"""Groups of collectives: rows of ids, and axes of a mesh (`plugrt.stablehlo.replica_groups`)."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from plugrt.errors import ProgramError
from plugrt.interface import CompileOptions, Program
from plugrt.stablehlo.bindings import hlo, ir, new_context, register_shardy
from plugrt.stablehlo.replica_groups import read_replica_groups
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import BackendClient

pytestmark = pytest.mark.skipif(
    not hasattr(hlo, "ReplicaGroupMeshAxesAttr"), reason="this jaxlib has no groups by mesh axes"
)

Axis = str | tuple[str, int, int]
"""An axis of the mesh, or a part of one: its name, what is before it, its size."""


def groups(mesh: dict[str, int], *axes: Axis, devices: Any = None) -> list[list[int]]:
    """Returns the groups over axes of a mesh of those sizes."""
    with new_context():
        stated = ir.ArrayAttr.get([hlo.MeshAxisAttr.get(*item) for item in mesh.items()])
        ids = None if devices is None else ir.DenseIntElementsAttr.get(np.array(devices))
        named = [
            hlo.AxisRefAttr.get(axis)
            if isinstance(axis, str)
            else hlo.AxisRefAttr.get(axis[0], hlo.SubAxisInfoAttr.get(*axis[1:]))
            for axis in axes
        ]
        attribute = hlo.ReplicaGroupMeshAxesAttr.get(
            hlo.MeshAttr.get(stated, ids), ir.ArrayAttr.get(named)
        )
        return read_replica_groups(attribute, {})


def test_the_groups_over_each_set_of_axes_in_each_order() -> None:
    mesh = {"x": 2, "y": 3, "z": 4}
    ids = np.arange(24).reshape(2, 3, 4)
    for count in range(4):
        for axes in itertools.permutations(mesh, count):
            joined = ["xyz".index(axis) for axis in axes]
            rest = [i for i in range(3) if i not in joined]
            size = math.prod(mesh[axis] for axis in axes)
            wanted = ids.transpose(rest + joined).reshape(-1, size).tolist()
            assert groups(mesh, *axes) == wanted


def test_parts_of_an_axis() -> None:
    assert groups({"x": 2, "y": 4}, ("y", 1, 2)) == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert groups({"x": 2, "y": 4}, ("y", 2, 2)) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert groups({"x": 2, "y": 4}, ("y", 2, 2), "x") == [[0, 4, 1, 5], [2, 6, 3, 7]]
    assert groups({"x": 8}, ("x", 2, 2)) == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert groups({"x": 8}, ("x", 1, 2), ("x", 4, 2)) == [[0, 1, 4, 5], [2, 3, 6, 7]]


def test_the_devices_of_a_mesh_in_an_order_of_its_own() -> None:
    assert groups({"x": 2, "y": 2}, "x", devices=[3, 2, 1, 0]) == [[3, 1], [2, 0]]


def test_axes_that_the_mesh_lacks() -> None:
    with pytest.raises(ProgramError, match=r"over the axis 'z'; its mesh has \['x', 'y'\]"):
        groups({"x": 2, "y": 2}, "z")
    with pytest.raises(ProgramError, match="does not divide an axis of size 4"):
        groups({"x": 4}, ("x", 2, 4))


@pytest.mark.parametrize("mesh", ["shardy's", "inline"])
def test_a_sum_over_an_axis_of_a_mesh(mesh: str) -> None:
    """As JAX 0.12 writes it, with the name of the module's mesh."""
    if mesh == "inline":
        stated = (
            '#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>, '
            '#stablehlo.mesh_axis<name = "y", size = 2>]>'
        )
    else:
        stated = "@mesh"
        with new_context() as context:
            register_shardy(context)
            try:
                ir.Module.parse(_sum(stated))
            except ir.MLIRError:
                pytest.skip("this jaxlib takes no symbol for a mesh")
    client = BackendClient(NumpyBackend(4))
    program = client.compile(Program(_sum(stated).encode()), CompileOptions(num_partitions=4))
    x = [client.buffer_from_host(np.float32([1 << i]), d) for i, d in enumerate(client.devices())]
    [results] = program.execute([x])
    assert [result.to_host().tolist() for result in results] == [[5], [10], [5], [10]]


def _sum(mesh: str) -> str:
    """Returns a program that adds the devices' values along the axis ``x`` of a mesh."""
    return f"""module {{
      sdy.mesh @mesh = <["x"=2, "y"=2]>
      func.func public @main(%a: tensor<1xf32>) -> tensor<1xf32> {{
        %0 = "stablehlo.all_reduce"(%a) <{{
          channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids,
          replica_groups = #stablehlo.replica_group_mesh_axes<mesh = {mesh},
            axes = [#stablehlo.axis_ref<name = "x">]>
        }}> ({{
          ^bb0(%x: tensor<f32>, %y: tensor<f32>):
            %s = stablehlo.add %x, %y : tensor<f32>
            stablehlo.return %s : tensor<f32>
        }}) : (tensor<1xf32>) -> tensor<1xf32>
        return %0 : tensor<1xf32>
      }}
    }}"""
