"""Meshes: their devices, names and sizes; errors; pickling."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import make_mesh
from plugrt.errors import ArgumentError, ArgumentTypeError, DeviceMismatch, InvalidArgument
from plugrt.sharding import AbstractMesh, Mesh
from support.behaviour import behaviour
from support.fake_client import FakeClient, FakePlugin
from support.registries import as_own, registry


@pytest.fixture
def devices() -> list[Any]:
    return list(FakeClient(count=8).devices())


def test_a_mesh_has_its_devices_by_name(devices: list[Any]) -> None:
    grid = np.array(devices).reshape(2, 4)
    mesh = Mesh(grid, ("x", "y"))
    assert (mesh.axis_names, mesh.axis_sizes, mesh.size) == (("x", "y"), (2, 4), 8)
    assert list(mesh.shape.items()) == [("x", 2), ("y", 4)]
    assert mesh.devices.tolist() == grid.tolist()
    assert mesh.flat_devices == tuple(devices)
    assert mesh.device_ids.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert not mesh.empty
    assert str(mesh) == "Mesh('x': 2, 'y': 4, axis_types=(Auto, Auto))"
    types = "(Auto, Auto)"
    assert repr(mesh) == f"Mesh(axis_sizes=(2, 4), axis_names=('x', 'y'), axis_types={types})"
    with pytest.raises(ValueError, match="read-only"):
        mesh.devices[0, 0] = devices[1]
    grid[0, 0] = devices[7]
    assert mesh.devices[0, 0] is devices[0]  # the mesh has a copy


def test_other_ways_to_say_it(devices: list[Any]) -> None:
    line = Mesh(devices[:3], "x")
    assert line == Mesh(tuple(devices[:3]), ["x"])
    assert Mesh([devices[:2], devices[2:4]], ("x", "y")).axis_sizes == (2, 2)
    one = Mesh(devices[5], ())
    assert (one.size, one.empty, one.flat_devices) == (1, False, (devices[5],))
    assert make_mesh((4, 2), ("a", "b"), devices=devices) == Mesh(
        np.array(devices).reshape(4, 2), ("a", "b")
    )
    assert make_mesh((2,), "a", devices=devices[3:]).flat_devices == tuple(devices[3:5])


def test_equality_is_of_devices_shape_and_names(devices: list[Any]) -> None:
    def grid(*shape: int) -> Any:
        return np.array(devices).reshape(shape)

    mesh = Mesh(grid(2, 4), ("x", "y"))
    assert mesh == Mesh(grid(2, 4), ("x", "y"))
    assert hash(mesh) == hash(Mesh(grid(2, 4), ("x", "y")))
    others = [
        Mesh(grid(4, 2), ("x", "y")),
        Mesh(grid(2, 4), ("y", "x")),
        Mesh(grid(2, 4)[::-1], ("x", "y")),
        mesh.abstract_mesh,
    ]
    assert all(mesh != other and other != mesh for other in others)


def test_the_shape_alone(devices: list[Any]) -> None:
    abstract = AbstractMesh((2, 4), ("x", "y"))
    assert Mesh(np.array(devices).reshape(2, 4), ("x", "y")).abstract_mesh == abstract
    assert abstract.abstract_mesh is abstract
    assert (abstract.size, dict(abstract.shape)) == (8, {"x": 2, "y": 4})
    assert pickle.loads(pickle.dumps(abstract)) == abstract
    assert repr(abstract) == "AbstractMesh('x': 2, 'y': 4, axis_types=(Auto, Auto))"
    assert abstract not in {AbstractMesh((4, 2), ("x", "y")), AbstractMesh((2, 4), ("x", "z"))}


def test_devices_of_other_processes() -> None:
    # devices with even ids belong to this process
    devices = FakeClient(count=8, processes=2).devices()
    columns = Mesh(np.array(devices).reshape(4, 2), ("x", "y"))
    assert columns.is_multi_process
    assert columns.local_devices == [devices[i] for i in (0, 2, 4, 6)]
    assert columns.local_mesh == Mesh(np.array(columns.local_devices).reshape(4, 1), ("x", "y"))
    with pytest.raises(InvalidArgument, match="not a contiguous part"):
        _ = Mesh(devices, "x").local_mesh
    with pytest.raises(InvalidArgument, match="no device of this process"):
        _ = Mesh([devices[1], devices[3]], "x").local_mesh
    assert not Mesh(columns.local_devices, "x").is_multi_process


@behaviour(
    103, "meshes, and shardings over them, are pickled by the ids of their devices",
    jax="pickles specs and shapes of meshes alone",
)  # fmt: skip
def test_a_pickled_mesh_names_its_backend_and_ids() -> None:
    made = registry(FakePlugin("mine", count=4), FakePlugin("other", priority=500))
    with as_own(made):
        mesh = Mesh(np.array(plugrt.devices("mine"))[[2, 0]], "x")
        pickled = pickle.dumps(mesh)
        assert pickle.loads(pickled) == mesh
    with (
        as_own(registry(FakePlugin("mine", count=2), FakePlugin("other", count=4, priority=500))),
        pytest.raises(InvalidArgument, match=r"has the devices \[2\] of mine; here it has \[0, 1"),
    ):
        pickle.loads(pickled)


Wrong = Callable[[list[Any]], Any]
WRONG: dict[str, tuple[Wrong, type[Exception], str]] = {
    "too few names": (
        lambda d: Mesh(np.array(d).reshape(2, 4), "x"), InvalidArgument,
        r"devices of shape \(2, 4\) and the axis names \('x',\)",
    ),
    "too many names": (lambda d: Mesh(d, ("x", "y")), InvalidArgument, "reshape"),
    "one name twice": (
        lambda d: Mesh(np.array(d).reshape(2, 4), ("x", "x")), InvalidArgument, "different names",
    ),
    "a device twice": (lambda d: Mesh([d[1], d[1]], "x"), InvalidArgument, "fake:1 twice"),
    "no devices": (lambda d: Mesh([], "x"), InvalidArgument, "at least one .*got none"),
    "no device": (lambda d: Mesh(["cpu"], "x"), InvalidArgument, "got 'cpu'"),
    "a number": (lambda d: Mesh(3, ()), InvalidArgument, "got 3"),
    "a ragged array": (
        lambda d: Mesh([d[:2], d[2:3]], "x"), InvalidArgument, r"got \[fake:0, fake:1\]",
    ),
    "names that are none": (lambda d: Mesh(d, (None,)), ArgumentTypeError, "NoneType None"),
    "no names": (lambda d: Mesh(d, None), ArgumentTypeError, "got None"),
    "two backends": (
        lambda d: Mesh([d[0], FakeClient(count=1).devices()[0]], "x"), DeviceMismatch,
        "are of one backend",
    ),
    "a size of 0": (lambda d: AbstractMesh((0,), "x"), InvalidArgument, "at least one device"),
    "sizes and names": (lambda d: AbstractMesh((2, 3), "x"), InvalidArgument, "2 axis sizes"),
    "a size that is none": (lambda d: AbstractMesh((2.5,), "x"), ArgumentError, "float"),
    "too few devices": (
        lambda d: make_mesh((3, 3), ("x", "y"), devices=d), InvalidArgument,
        "a mesh of 3 x 3 needs 9 devices; it was given 8",
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_meshes_are_refused(devices: list[Any], wrong: str) -> None:
    """Differs from JAX: a `Mesh` with two axes of one name | accepted | `InvalidArgument`."""
    make, error, said = WRONG[wrong]
    with pytest.raises(error, match=said):
        make(devices)


def test_public_names() -> None:
    assert (plugrt.sharding.Mesh, plugrt.sharding.AbstractMesh) == (Mesh, AbstractMesh)
    assert plugrt.make_mesh is make_mesh
