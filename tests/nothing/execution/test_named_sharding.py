"""`PartitionSpec` and `NamedSharding`: the part of an array on each device of a mesh."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

from plugrt.errors import ArgumentTypeError, InvalidArgument, ShapeError
from plugrt.sharding import AbstractMesh, Mesh, NamedSharding, PmapSharding, SingleDeviceSharding
from plugrt.sharding import PartitionSpec as P
from support.behaviour import behaviour
from support.fake_client import FakeClient

SIZES = (2, 3, 2)
NAMES = ("x", "y", "z")


@pytest.fixture(scope="module")
def mesh() -> Mesh:
    return Mesh(np.array(FakeClient(count=12).devices()).reshape(SIZES), NAMES)


def test_a_spec_is_a_value() -> None:
    spec = P("x", None, ("y", "z"))
    assert (len(spec), spec[0], spec[1:], [*spec]) == (
        3, "x", (None, ("y", "z")), ["x", None, ("y", "z")],
    )  # fmt: skip
    assert spec == P("x", None, ["y", "z"])
    assert hash(spec) == hash(P("x", None, ("y", "z")))
    assert pickle.loads(pickle.dumps(spec)) == copy.deepcopy(spec) == spec
    assert repr(spec) == "P('x', None, ('y', 'z'))"
    assert P(("x",), ()) == P("x", None)
    assert P("x") != P("x", None)  # as in JAX
    assert P("x") != ("x",)
    assert P("x") + P("y") == P("x", "y") == P("x") + ("y",)  # noqa: RUF005  # what is tested
    assert spec.axis_names == NAMES
    assert [spec.axes_of(i) for i in range(4)] == [("x",), (), ("y", "z"), ()]


def test_unconstrained_dimensions_of_a_spec() -> None:
    spec = P(P.UNCONSTRAINED, "x")
    assert repr(spec) == "P(UNCONSTRAINED, 'x')"
    assert [spec.is_unconstrained(i) for i in range(3)] == [True, False, False]
    assert pickle.loads(pickle.dumps(spec)) == spec


@pytest.mark.parametrize("wrong", [1.5, b"x", ("x", None), True, P("x")])
def test_wrong_entries_of_a_spec_are_refused(wrong: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="PartitionSpec takes"):
        P(wrong)


def test_an_axis_that_is_named_twice() -> None:
    for wrong in (P("x", "x"), P(("x", "y"), None, "y")):
        with pytest.raises(InvalidArgument, match="twice"):
            NamedSharding(AbstractMesh((2, 2), ("x", "y")), wrong)


def specs() -> list[P]:
    """Returns all specs of two dimensions over three axes, each named once at most."""
    names = [(), *itertools.chain(*(itertools.permutations(NAMES, n) for n in (1, 2, 3)))]
    return [P(a, b) for a in names for b in names if not set(a) & set(b)]


@pytest.mark.parametrize("spec", specs(), ids=str)
def test_each_device_has_what_the_spec_says(mesh: Mesh, spec: P) -> None:
    sharding = NamedSharding(mesh, spec)
    host = np.arange(24 * 12).reshape(24, 12)
    counts = [int(np.prod([mesh.shape[n] for n in spec.axes_of(i)], dtype=int)) for i in (0, 1)]
    assert sharding.shard_shape(host.shape) == (24 // counts[0], 12 // counts[1])
    assert sharding.whole_shape(sharding.shard_shape(host.shape)) == host.shape
    # Dimensions are split into the axes' sizes, which are indexed by a device's position.
    sizes = [[mesh.shape[n] for n in spec.axes_of(i)] for i in (0, 1)]
    split = host.reshape(*sizes[0], 24 // counts[0], *sizes[1], 12 // counts[1])
    where = sharding.devices_indices_map(host.shape)
    assert tuple(where) == mesh.flat_devices == sharding.devices
    for at in np.ndindex(*SIZES):
        index = dict(zip(NAMES, at, strict=True))
        own = [tuple(index[n] for n in spec.axes_of(i)) for i in (0, 1)]
        part = split[(*own[0], slice(None), *own[1])]
        np.testing.assert_array_equal(host[where[mesh.devices[at]]], part)
    assert sharding.is_fully_replicated == (not spec.axis_names)


def test_dimensions_beyond_the_spec_are_whole(mesh: Mesh) -> None:
    sharding = NamedSharding(mesh, P(None, "y"))
    assert sharding.shard_shape((5, 6, 7)) == (5, 2, 7)
    assert NamedSharding(mesh, P()).shard_shape(()) == ()
    for ask in (sharding.shard_shape, sharding.devices_indices_map):
        with pytest.raises(ShapeError, match="names 2 dimensions, and the array has 1"):
            ask((6,))
    with pytest.raises(ShapeError, match="names 2 dimensions, and the array has 1"):
        sharding.is_equivalent_to(NamedSharding(mesh, P("y")), 1)


def test_undivided_dimensions_beyond_the_array_are_passed_over_but_none_is_put_so(
    mesh: Mesh,
) -> None:
    """Same as JAX: what a spec says beyond an array's dimensions, where it divides none of them."""
    long = NamedSharding(mesh, P("y", None, None))
    assert long.shard_shape((6,)) == (2,)
    assert long.devices_indices_map((6,)) == NamedSharding(mesh, P("y")).devices_indices_map((6,))
    for other, alike in ((P("y"), True), (P("y", None), True), (P("x"), False), (P(), False)):
        assert long.is_equivalent_to(NamedSharding(mesh, other), 1) is alike
        assert NamedSharding(mesh, other).is_equivalent_to(long, 1) is alike
    flat = Mesh(np.reshape(mesh.devices, (12, 1)), ("x", "y"))
    assert NamedSharding(flat, P("x", "y")).shard_shape((12,)) == (1,)
    wrong = NamedSharding(mesh, P(None, None, "y"))
    for refused in (long.check_rank, lambda ndim: long.check_shape((6,) * ndim), wrong.tiling):
        with pytest.raises(ShapeError, match="names 3 dimensions, and the array has 1"):
            refused(1)


@behaviour(103, "a dimension that does not divide is refused, with both numbers and the cure")
def test_uneven_division_is_refused_with_the_numbers(mesh: Mesh) -> None:
    sharding = NamedSharding(mesh, P(("y", "z")))
    said = "divides dimension 0 into 6 equal parts.*size 16 cannot be divided by 6: pad it to 18"
    for ask in (sharding.shard_shape, sharding.devices_indices_map):
        with pytest.raises(ShapeError, match=said):
            ask((16, 2))
    assert sharding.shard_shape((0, 2)) == (0, 2)


@behaviour(103, "shardings of all classes that divide alike are equivalent; over shapes alone, too")
def test_equality_and_equivalence(mesh: Mesh) -> None:
    sharding = NamedSharding(mesh, P("x"))
    assert sharding == NamedSharding(mesh, P("x"))
    assert hash(sharding) == hash(NamedSharding(mesh, P("x")))
    assert sharding != NamedSharding(mesh, P("x", None))
    assert sharding.is_equivalent_to(NamedSharding(mesh, P("x", None)), 2)
    assert not sharding.is_equivalent_to(NamedSharding(mesh, P(None, "x")), 2)
    assert not sharding.is_equivalent_to(NamedSharding(mesh, P("z")), 1)
    turned = Mesh(mesh.devices[::-1], NAMES)
    assert not sharding.is_equivalent_to(NamedSharding(turned, P("x")), 1)
    renamed = Mesh(mesh.devices.reshape(2, 6), ("a", "b"))
    assert NamedSharding(renamed, P("a")).is_equivalent_to(sharding, 1)
    shape = mesh.abstract_mesh
    abstract = NamedSharding(shape, P("x"))
    assert abstract.num_devices == mesh.size
    assert abstract.is_equivalent_to(NamedSharding(shape, P("x", None)), 2)
    assert not abstract.is_equivalent_to(NamedSharding(shape, P("y")), 2)
    assert not abstract.is_equivalent_to(sharding, 1)
    assert not sharding.is_equivalent_to(abstract, 1)
    assert sharding == NamedSharding(mesh, P("x"), memory_kind="device")
    whole = NamedSharding(mesh, P())
    assert whole.is_equivalent_to(PmapSharding(mesh.flat_devices, None), 3)
    one = NamedSharding(Mesh(mesh.flat_devices[:1], "x"), P("x"))
    assert one != SingleDeviceSharding(mesh.flat_devices[0])
    assert SingleDeviceSharding(mesh.flat_devices[0]).is_equivalent_to(one, 2)
    line = NamedSharding(Mesh(mesh.flat_devices, "x"), P("x"))
    assert line != PmapSharding(mesh.flat_devices)  # their axes' names differ
    assert line.is_equivalent_to(PmapSharding(mesh.flat_devices), 1)
    with pytest.raises(ArgumentTypeError, match="takes a sharding"):
        line.is_equivalent_to("x", 1)  # type: ignore[arg-type]


def test_memories(mesh: Mesh) -> None:
    sharding = NamedSharding(mesh, P("x")).with_memory_kind("device")
    assert (sharding.memory_kind, repr(sharding)) == (None, repr(NamedSharding(mesh, P("x"))))
    sharding = sharding.with_memory_kind("host")
    assert (sharding.memory_kind, sharding.spec) == ("host", P("x"))
    assert repr(sharding).endswith("P('x',), memory_kind='host')")
    with pytest.raises(InvalidArgument, match="no memory of kind 'vram'"):
        sharding.with_memory_kind("vram")


def test_a_mesh_without_devices_has_shapes() -> None:
    sharding = NamedSharding(AbstractMesh((2, 4), ("x", "y")), P("y"))
    assert sharding.shard_shape((8, 3)) == (2, 3)
    assert pickle.loads(pickle.dumps(sharding)) == sharding
    with pytest.raises(InvalidArgument, match="has no devices"):
        _ = sharding.devices


def test_wrong_arguments(mesh: Mesh) -> None:
    with pytest.raises(InvalidArgument, match=r"names the axis 'w', and the mesh has \('x', 'y'"):
        NamedSharding(mesh, P("w"))
    with pytest.raises(ArgumentTypeError, match=r"takes a PartitionSpec; .*write PartitionSpec"):
        NamedSharding(mesh, "x")  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="takes a Mesh"):
        NamedSharding(mesh.flat_devices, P("x"))  # type: ignore[arg-type]


def test_devices_of_this_process() -> None:
    devices = FakeClient(count=4, processes=2).devices()
    sharding = NamedSharding(Mesh(devices, "x"), P("x"))
    assert (sharding.num_devices, sharding.is_fully_addressable) == (4, False)
    where = sharding.addressable_devices_indices_map((8,))
    assert where == {devices[0]: (slice(0, 2),), devices[2]: (slice(4, 6),)}
