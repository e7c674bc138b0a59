"""`from_jax` of functions that JAX divides over a mesh: they run on plugrt's devices."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import pytest

import plugrt
from cpu.transforms import as_jax_over_meshes
from plugrt import array_api as xp
from plugrt.errors import ArgumentError, DeviceMismatch, InvalidArgument, Unimplemented
from plugrt.execution.placement.default_device import default_device
from plugrt.sharding import Mesh, NamedSharding
from plugrt.sharding import PartitionSpec as P
from support import children
from support.behaviour import behaviour
from support.jax_oracle import jax
from support.watched_calls import at_calls

A = np.arange(64, dtype=np.float32).reshape(8, 8)
AUTO = (jax.sharding.AxisType.Auto,) * 2  # versions have different defaults


def jax_mesh(*sizes: int) -> Any:
    names = ("x", "y")[: len(sizes)]
    return jax.sharding.AbstractMesh(sizes, names, AUTO[: len(sizes)])


def over(*spec: Any, mesh: Any = None) -> Any:
    return jax.sharding.NamedSharding(mesh or jax_mesh(2, 4), jax.sharding.PartitionSpec(*spec))


def shuffled() -> Mesh:
    """Returns a mesh of plugrt's, with devices in another order than their ids."""
    order = [3, 1, 0, 2, 7, 6, 5, 4]
    return Mesh(np.reshape([plugrt.devices()[i] for i in order], (2, 4)), ("x", "y"))


@pytest.fixture(autouse=True)
def has_eight_devices() -> None:
    """Skips without eight devices that a program can be divided over."""
    if plugrt.device_count() < 8 or not plugrt.get_backend().capabilities.partitions:
        pytest.skip("no 8 devices here, or none that a program can be divided over")


@pytest.fixture(scope="module")
def said_by_child() -> list[str]:
    """Returns the lines of a child, where JAX has 8 devices, but starts after plugrt's calls."""
    command = [sys.executable, as_jax_over_meshes.__file__]
    path = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), *sys.path])
    done = children.run(command, env={**os.environ, "PYTHONPATH": path}, timeout=240)
    lines = done.stdout.splitlines()
    assert len(lines) == 2 + len(as_jax_over_meshes.CASES), done.stderr
    return lines


@behaviour(
    20,
    "a function that JAX divides over a mesh (shardings of `jax.jit`, constraints, `shard_map`, "
    "and gradients of these) runs on as many devices, divided as by JAX, which starts no backend",
)
def test_divided_as_by_jax(said_by_child: list[str]) -> None:
    assert said_by_child[0] == "backends False"
    assert [line for line in said_by_child[1:-1] if not line.endswith("| same")] == []


@behaviour(
    103,
    "500 random shardings of all classes have the parts that JAX's have, and are equivalent where "
    "JAX's are, also for arrays of fewer dimensions than a spec names",
)
def test_shardings_are_alike_as_jaxs(said_by_child: list[str]) -> None:
    assert said_by_child[-1] == "shardings | same"


@behaviour(
    20,
    "over a mesh, host data are put in the parts that `in_shardings` says, donated arguments are "
    "taken, and arrays of a mesh of plugrt's say which devices it is",
    jax="an array with another layout than `in_shardings` says is refused",
)
def test_placement_and_donation() -> None:
    f = plugrt.from_jax(
        jax.jit(
            lambda a, b: {"b": b, "a": a * 2},
            in_shardings=(over("x"), None),
            out_shardings=over(None, "y"),
            donate_argnums=0,
        )
    )
    (taken, *_), _ = f.lower(A, A).compile().input_shardings
    assert taken.shard_shape(A.shape) == (4, 8)
    assert taken.mesh == plugrt.make_mesh((2, 4), ("x", "y"))
    for result in f(A, A).values():
        assert result.sharding == NamedSharding(taken.mesh, P(None, "y"))
    mesh = shuffled()
    for spec in (P("x"), P("y")):
        x = plugrt.device_put(A, NamedSharding(mesh, spec))
        result = f(x, A)["a"]
        np.testing.assert_array_equal(result, 2 * A)
        assert result.sharding == NamedSharding(mesh, P(None, "y"))
        # As in JAX, an argument is kept if no result has parts of its size.
        assert x.is_deleted() == (spec == P("y") and plugrt.get_backend().capabilities.donation)


def test_within_functions_of_plugrts() -> None:
    rows = plugrt.from_jax(
        jax.shard_map(
            lambda a: jax.lax.psum(a, "x"),
            mesh=jax_mesh(2, 4),
            in_specs=jax.sharding.PartitionSpec("x"),
            out_specs=jax.sharding.PartitionSpec(),
        )
    )
    expected = A[:4] + A[4:]
    total = plugrt.jit(lambda a: (xp.sum(rows(a)), rows(a + 1)))
    for x in (A, plugrt.device_put(A, NamedSharding(shuffled(), P("y")))):
        summed, plus = total(x)
        assert float(summed) == expected.sum()
        np.testing.assert_array_equal(plus, expected + 2)
    with plugrt.disable_jit():
        np.testing.assert_array_equal(rows(A), expected)
    last = plugrt.jit(rows, out_shardings=NamedSharding(shuffled(), P(None, "x")))(A)
    assert last.sharding.devices == shuffled().flat_devices
    with pytest.raises(Unimplemented, match=r"the mesh .* of '<lambda>' within pmap"):
        plugrt.pmap(lambda a: rows(a))(np.stack([A, A]))


def test_meshes_with_devices_of_jaxs_and_named_by_its_context() -> None:
    own = plugrt.make_mesh((2, 4), ("x", "y"))
    mesh = jax_mesh(2, 4)
    spec = jax.sharding.PartitionSpec("y", "x")
    with jax.sharding.use_abstract_mesh(mesh):
        f = plugrt.from_jax(lambda a: jax.lax.with_sharding_constraint(a + 1, spec))
        assert plugrt.tree.structure(f(A)) == plugrt.tree.structure(A)
    explicit = mesh.update_axis_types(dict.fromkeys(("x", "y"), jax.sharding.AxisType.Explicit))
    with jax.sharding.use_abstract_mesh(explicit):
        result = plugrt.from_jax(lambda a: jax.sharding.reshard(a + 1, spec))(A)
    np.testing.assert_array_equal(result, A + 1)
    assert result.sharding == NamedSharding(own, P("y", "x"))


def test_unused_results_place_no_program() -> None:
    doubled = jax.shard_map(
        lambda a: a * 2, mesh=jax_mesh(8), in_specs=jax.sharding.PartitionSpec("x"),
        out_specs=jax.sharding.PartitionSpec("x"),
    )  # fmt: skip
    for divide in (
        doubled,
        jax.pmap(lambda row: row * 2),
        lambda a: jax.lax.with_sharding_constraint(a, over("x")),
        lambda a: jax.device_put(a, over("x")),
    ):
        there = plugrt.device_put(A, plugrt.devices()[3])
        f = plugrt.from_jax(lambda a, divide=divide: (divide(a), a + 1)[1])
        assert f(A).devices() == {plugrt.devices()[0]}
        assert f(there).devices() == {plugrt.devices()[3]}
        both = plugrt.from_jax(lambda a, divide=divide: (divide(a), a + 1))
        assert len(both(A)[1].sharding.device_set) == 8
        if divide is doubled:
            second = plugrt.jit(lambda a, f: f(a)[1], static_argnums=1)
            assert second(there, both).devices() == {plugrt.devices()[3]}
    line = sys._getframe().f_lineno + 1
    f = plugrt.from_jax(lambda a: jax.lax.with_sharding_constraint(a, over("x")))
    with pytest.raises(DeviceMismatch, match=rf"'y': 4\), named at {__file__}:{line}, of '<lam"):
        f(there)


def test_values_put_over_a_mesh() -> None:
    put = plugrt.from_jax(lambda a: jax.device_put(a, over("x")) + 1)
    result = put(A)
    np.testing.assert_array_equal(result, A + 1)
    assert result.sharding == NamedSharding(plugrt.make_mesh((2, 4), ("x", "y")), P())
    with pytest.raises(DeviceMismatch, match=r"'x': 2, 'y': 4\) of '<lambda>' on any 8"):
        put(plugrt.device_put(A, plugrt.devices()[3]))
    four = over("x", mesh=jax_mesh(4))
    with pytest.raises(Unimplemented, match="puts values over meshes of 4 and of 8 devices"):
        plugrt.from_jax(lambda a: jax.device_put(jax.device_put(a, four) + 1, over("x")))(A)


def test_the_memory_of_results() -> None:
    """Differs from JAX: `in_shardings` of another memory in a function given to `from_jax` | the
    arguments are put there | `Unimplemented`; results are put in any.
    """
    if "pinned_host" not in [memory.kind for memory in plugrt.devices()[0].memories()]:
        pytest.skip("no pinned_host here")

    def kinds(f: Any) -> list[str | None]:
        return [x.sharding.memory_kind for x in plugrt.tree.leaves(f(A))]

    host = jax.sharding.NamedSharding(
        jax_mesh(2, 4), jax.sharding.PartitionSpec("x"), memory_kind="pinned_host"
    )
    jitted = jax.jit(lambda a: (a + 1, a * 2), out_shardings=(host, over("x")))
    f = plugrt.from_jax(jitted)
    if not plugrt.get_backend().platform_version.startswith("jaxlib"):
        with pytest.raises(Unimplemented, match=r"to memories. device_put the result there"):
            f(A)
        return
    assert kinds(f) == kinds(plugrt.jit(lambda a: f(a))) == ["pinned_host", None]
    assert kinds(plugrt.from_jax(lambda a: jitted(a))) == [None, None]  # as JAX for jit in jit
    assert kinds(plugrt.from_jax(lambda a: jax.device_put(a + 1, host))) == ["pinned_host"]
    one = plugrt.from_jax(lambda a: (jax.device_put(a, jax.memory.Space.Host), a + 1))
    assert kinds(one) == ["pinned_host", None]
    with pytest.raises(Unimplemented, match=r"in_shardings of the memory kinds \['pinned_h"):
        plugrt.from_jax(jax.jit(lambda a: a + 1, in_shardings=host))(A)


@pytest.mark.filterwarnings("ignore:backend and device argument on jit")
def test_devices_of_jaxs_are_refused() -> None:
    """Differs from JAX: a device of JAX's in a function given to `from_jax`, by `jax.jit(device=)`
    or a sharding of one device | it runs there | `Unimplemented`; `from_jax` has `device=`.
    """
    one = jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0])
    named = jax.jit(lambda a: a + 1, device=jax.devices("cpu")[0])
    for f, primitive in (
        (named, "jit"),
        (lambda a: named(a) * 2, "jit"),
        (jax.jit(lambda a: a + 1, out_shardings=one), "jit"),
        (lambda a: jax.lax.fori_loop(0, 2, lambda i, c: jax.device_put(c, one), a), "device_put"),
        (lambda a: jax.lax.with_sharding_constraint(a, one), "sharding_constraint"),
    ):
        with pytest.raises(Unimplemented, match=rf"device of JAX's, by .* of jax\.{primitive}: S"):
            plugrt.from_jax(f)(A)
    assert plugrt.from_jax(lambda a: (named(a), a * 2)[1])(A)[1, 1] == 18


def test_the_backend_and_wrong_places() -> None:
    doubled = jax.jit(lambda a: a * 2, in_shardings=over("x"), out_shardings=over("x"))
    asked: list[Any] = []
    with at_calls([default_device], lambda *_: asked.append(1)):  # only the backend is checked
        [name] = [n for n, client in plugrt.backends().items() if client is plugrt.get_backend()]
        named = plugrt.from_jax(doubled, backend=name)(A)
    assert not asked
    assert named.sharding.devices == tuple(plugrt.devices()[:8])
    f = plugrt.from_jax(doubled)
    with pytest.raises(
        DeviceMismatch, match=r"(?s)argument a: float32\[8,8\] on .*the mesh .* of .* any 8 devices"
    ):
        f(plugrt.device_put(A, plugrt.devices()[1]))
    four = Mesh(plugrt.devices()[:4], ("x",))
    with pytest.raises(DeviceMismatch, match=r"on the devices \[0, 1, 2, 3\]"):
        f(plugrt.device_put(A, NamedSharding(four, P("x"))))
    with pytest.raises(ArgumentError, match=r"over 8 devices, and from_jax was told .*backend="):
        plugrt.from_jax(doubled, device=plugrt.devices()[0])(A)
    wide = over("x", mesh=jax_mesh(64))
    many = plugrt.from_jax(jax.jit(lambda a: a + 1, in_shardings=wide))
    assert "sdy.sharding_constraint" in many.lower(np.ones(64, np.float32)).as_text()
    with pytest.raises(InvalidArgument, match=r"over 64 devices; .* JAX_NUM_CPU_DEVICES=64"):
        many(np.ones(64, np.float32))
