"""A mesh stays a mesh, even with one device: shardings keep `.mesh` and `.spec` as in JAX.

Same as JAX: a mesh of one device is a mesh: each function that accepts or returns a sharding keeps
its mesh and its spec.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import plugrt
import plugrt.sharding
from plugrt.errors import DeviceMismatch, ShapeError
from support.jax_oracle import jax

X = np.arange(64, dtype=np.float32).reshape(8, 8)

N = None
MESHES = {"1": (1,), "1 x 1": (1, 1), "2": (2,), "2 x 1": (2, 1)}


def make_side(library: Any, functions: Any, devices: Any, shape: tuple[int, ...]) -> Any:
    """Returns functions of one library, with shardings over a mesh, and arrays in them."""
    s = library.sharding
    here = np.array(devices[: int(np.prod(shape))], object).reshape(shape)
    mesh = s.Mesh(here, ("x", "y")[: len(shape)])
    rows, columns = (s.NamedSharding(mesh, s.PartitionSpec(*spec)) for spec in ("x", [None, "x"]))
    put = library.device_put
    return SimpleNamespace(
        m=library, P=s.PartitionSpec, xp=functions, put=put, jit=library.jit, mesh=mesh,
        size=mesh.size, rows=rows, columns=columns, first=s.SingleDeviceSharding(devices[0]),
        last=s.SingleDeviceSharding(devices[3]), last_device=devices[3],
        a=put(X, rows), b=put(X, columns), c=put(X, s.NamedSharding(mesh, s.PartitionSpec())),
        struct=lambda where=None: library.ShapeDtypeStruct((8, 8), np.float32, sharding=where),
        constrain=library.lax.with_sharding_constraint,
    )  # fmt: skip


def make_sides(size: int) -> tuple[Any, Any]:
    ours = make_side(plugrt, plugrt.array_api, plugrt.devices(), (size,))
    return ours, make_side(jax, jax.numpy, jax.devices("cpu"), (size,))


def compile_info(lowered: Any) -> Any:
    compiled = lowered.compile()
    return (
        *compiled.input_shardings[0],
        compiled.output_shardings,
        [info.sharding for info in plugrt.tree.leaves(compiled.out_info)],
    )


def map_rows(k: Any, spec: Any) -> Any:
    return k.m.shard_map(lambda v: v + 1, mesh=k.mesh, in_specs=spec, out_specs=spec)


def in_context(k: Any, call: Callable[[], Any]) -> Any:
    with k.m.set_mesh(k.mesh):
        return call()


def add(v: Any) -> Any:
    return v + 1


def add_both_ways(k: Any, v: Any, w: Any) -> Any:
    return [k.jit(lambda v, w: v + w)(*pair) for pair in ((v, w), (w, v))]


def write_spec(k: Any, spec: Any) -> Any:
    """Returns results of an array whose spec has trailing None entries, or too few."""
    v = k.put(X, k.m.sharding.NamedSharding(k.mesh, k.P(*spec)))
    f = k.jit(lambda v, w: (v + 1, w * 2, v.sum(axis=0), v[None] + 1, k.xp.ones((8, 8))))
    return [v + 1, *f(v, k.b), *f(X, v)]


def with_constant(k: Any) -> Callable[[Any], Any]:
    return lambda v: (v + 1, k.xp.ones((3,)), k.xp.ones((8, 8)), v)


KINDS: dict[str, Callable[[Any], Any]] = {
    "device_put of host data": lambda k: k.a,
    "device_put of an array": lambda k: k.put(k.put(X), k.rows),
    "device_put to another spec": lambda k: k.put(k.a, k.columns),
    "device_put to a device": lambda k: k.put(k.a, k.first),
    "make_array_from_callback": lambda k: k.m.make_array_from_callback(
        (8, 8), k.rows, lambda index: X[index]
    ),
    "make_array_from_single_device_arrays": lambda k: k.m.make_array_from_single_device_arrays(
        (8 * k.size, 8), k.rows, [k.put(X, d) for d in k.mesh.devices.flat]
    ),
    "asarray": lambda k: k.xp.asarray(X, device=k.rows),
    "zeros": lambda k: k.xp.zeros((8, 8), device=k.rows),
    "zeros_like": lambda k: k.xp.zeros_like(k.a),
    "shards": lambda k: [shard.data.sharding for shard in k.a.addressable_shards],
    "jit of an array": lambda k: [k.jit(add)(v) for v in (k.a, k.b, k.c)],
    "jit of specs in other words": lambda k: [
        write_spec(k, spec)
        for spec in ((N, N), ("x", N), k.mesh.axis_names[::-1])
    ],
    "jit transposes": lambda k: k.jit(lambda v: v.T)(k.a) if k.size == 1 else (),
    "jit returns an argument": lambda k: k.jit(lambda v: v)(k.a),
    "jit reduces": lambda k: k.jit(lambda v: v.sum())(k.a),
    "jit with constants": lambda k: k.jit(with_constant(k))(k.a),
    "jit without the argument": lambda k: k.jit(lambda v: k.xp.ones((3,)))(k.a),
    "jit of two arrays": lambda k: add_both_ways(k, k.a, k.b),
    "jit of two results": lambda k: k.jit(lambda v, w: (v + 1, w * 2))(k.a, X),
    "jit beside host data": lambda k: add_both_ways(k, k.a, X),
    "jit beside an uncommitted array": lambda k: add_both_ways(k, k.a, k.put(X)),
    "jit beside a device": lambda k: (
        add_both_ways(k, k.a, k.put(X, k.first)) if k.size == 1 else ()
    ),
    "jit of an unused array": lambda k: k.jit(lambda v, w: v + 1)(k.put(X), k.a),
    "jit of a captured array": lambda k: k.jit(lambda v: k.a + v)(X),
    "in_shardings": lambda k: k.jit(add, in_shardings=k.rows)(X),
    "in_shardings of an array": lambda k: k.jit(add, in_shardings=k.rows)(k.a),
    "in_shardings on one device": lambda k: (
        [
            k.jit(add, in_shardings=k.rows)(k.put(X, k.first)),
            k.jit(add, in_shardings=k.columns)(k.a),
            k.jit(add, in_shardings=k.first)(k.a),
            k.jit(lambda v: v, in_shardings=k.first)(k.a),
        ]
        if k.size == 1
        else ()
    ),
    "out_shardings": lambda k: k.jit(add, out_shardings=k.rows)(X),
    "out_shardings of an array": lambda k: k.jit(add, out_shardings=k.columns)(k.a),
    "out_shardings without arguments": lambda k: k.jit(
        lambda: k.xp.ones((8, 8)), out_shardings=k.rows
    )(),
    "out_shardings of some results": lambda k: k.jit(
        lambda v: (v + 1, v.sum()), out_shardings=(k.rows, None)
    )(X),
    "donation": lambda k: k.jit(add, donate_argnums=0)(k.put(X, k.rows)),
    "operators": lambda k: [k.a + 1, k.a + k.b, k.a @ k.a, 2 * k.b, -k.a, k.a[0]],
    "a constraint": lambda k: [k.constrain(X, k.rows), k.constrain(k.a, k.columns)],
    "a constraint in jit": lambda k: [
        k.jit(lambda v: k.constrain(v, k.rows) + 1)(X),
        k.jit(lambda v: k.constrain(v, k.rows))(X),
    ],
    "a constraint in jit beside a device": lambda k: (
        k.jit(lambda v: k.constrain(v, k.rows) + 1)(k.put(X, k.first)) if k.size == 1 else ()
    ),
    "device_put in jit": lambda k: (
        k.jit(lambda v: k.put(v, k.rows) + 1)(X) if k.size == 1 else ()
    ),
    "shard_map": lambda k: [map_rows(k, spec)(X) for spec in (k.P("x"), k.P())],
    "shard_map of an array": lambda k: map_rows(k, k.P("x"))(k.a),
    "shard_map in jit": lambda k: [k.jit(map_rows(k, k.P("x")))(v) for v in (X, k.a)],
    "set_mesh": lambda k: in_context(k, lambda: k.jit(add)(X)),
    "a spec in the context": lambda k: in_context(
        k, lambda: [k.jit(add, out_shardings=k.P("x"))(X), k.put(X, k.P("x"))]
    ),
    "pmap": lambda k: k.m.pmap(add, devices=[*k.mesh.devices.flat])(X[: k.size]),
    "jit of a result of pmap": lambda k: k.jit(add)(
        k.m.pmap(add, devices=[*k.mesh.devices.flat])(X[: k.size])
    ),
    "another memory": lambda k: [
        k.put(X, k.rows.with_memory_kind("pinned_host")),
        k.jit(add, out_shardings=k.rows.with_memory_kind("pinned_host"))(X),
    ],
    "stages of an array": lambda k: compile_info(k.jit(add).lower(k.a)),
    "stages of a struct": lambda k: compile_info(k.jit(add).lower(k.struct(k.rows))),
    "stages of both": lambda k: compile_info(k.jit(lambda v, w: (v + 1, w * 2)).lower(k.a, X)),
    "stages of in_shardings": lambda k: compile_info(
        k.jit(add, in_shardings=k.rows).lower(k.struct())
    ),
    "stages of out_shardings": lambda k: [
        k.jit(add, out_shardings=k.rows).eval_shape(X).sharding,
        k.jit(add, out_shardings=k.rows).lower(X).out_info.sharding,
        k.jit(add, out_shardings=k.rows).lower(X).compile().output_shardings,
    ],
    "a compiled call": lambda k: k.jit(add).lower(k.a).compile()(k.a),
}  # fmt: skip


def describe(found: Any) -> Any:
    """Returns a sharding, or an array's, in a form that both libraries share."""
    if isinstance(found, list | tuple):
        return [describe(each) for each in found]
    sharding = getattr(found, "sharding", found)
    spec, ids = getattr(sharding, "spec", None), sorted(d.id for d in sharding.device_set)
    kind = sharding.memory_kind or "device"
    if spec is None:
        return type(sharding).__name__, ids, kind
    return type(sharding).__name__, tuple(spec), dict(sharding.mesh.shape), ids, kind


@pytest.mark.parametrize("kind", KINDS)
def test_a_sharding_keeps_its_mesh(kind: str) -> None:
    if "memory" in kind and not plugrt.get_backend().platform_version.startswith("jaxlib"):
        pytest.skip("the library may move no results to memories")
    for name, shape in MESHES.items():
        ours = make_side(plugrt, plugrt.array_api, plugrt.devices(), shape)
        theirs = make_side(jax, jax.numpy, jax.devices("cpu"), shape)
        found, expected = (describe(KINDS[kind](side)) for side in (ours, theirs))
        assert found == expected, f"over a mesh {name}"


def test_the_default_memory_is_the_same_by_its_name() -> None:
    for library, devices in ((plugrt, plugrt.devices()), (jax, jax.devices("cpu"))):
        k = make_side(library, None, devices, (2,))
        for sharding in (k.rows, k.first):
            named = sharding.with_memory_kind("device")
            assert (named, hash(named)) == (sharding, hash(sharding))
            assert sharding.with_memory_kind("pinned_host") not in (sharding, named)


def over_shape(k: Any, size: int, kind: str | None = None) -> Any:
    """Returns a sharding over a mesh of one axis, without devices."""
    mesh = k.m.sharding.AbstractMesh((size,), ("x",))
    return k.m.sharding.NamedSharding(mesh, k.P("x"), memory_kind=kind)


CONTRADICTIONS: dict[str, Callable[[Any], Any]] = {
    "two devices": lambda k: k.jit(lambda v, w: v + w).lower(k.struct(k.first), k.struct(k.last)),
    "a device and a mesh": lambda k: k.jit(lambda v, w: v + w).lower(
        k.struct(k.last), k.struct(k.rows)
    ),
    "arrays": lambda k: k.jit(lambda v, w: v + w).lower(k.put(X, k.first), k.put(X, k.last)),
    "in_shardings": lambda k: k.jit(add, in_shardings=k.rows).lower(k.struct(k.last)),
    "in_shardings on one device": lambda k: k.jit(add, in_shardings=k.last).lower(k.struct(k.rows)),
    "out_shardings": lambda k: k.jit(add, out_shardings=k.rows).lower(k.struct(k.last)),
    "a constraint": lambda k: k.jit(lambda v: k.constrain(v, k.rows)).lower(k.struct(k.last)),
    "meshes of two sizes": lambda k: k.jit(lambda v, w: v + w).lower(
        k.struct(over_shape(k, 2)), k.struct(over_shape(k, 4))
    ),
    "a mesh without devices": lambda k: k.jit(lambda v, w: v + w).lower(
        k.struct(over_shape(k, 2)), k.struct(k.first)
    ),
    "a memory that is none": lambda k: k.jit(add).lower(k.struct(over_shape(k, 2, "nonsense"))),
    "in_shardings in a memory that is none": lambda k: k.jit(
        add, in_shardings=over_shape(k, 2, "nonsense")
    ).lower(k.struct()),
    "a constraint in a memory that is none": lambda k: k.jit(
        lambda v: k.put(v, over_shape(k, 2, "nonsense"))
    ).lower(k.struct()),
}


@pytest.mark.parametrize("kind", CONTRADICTIONS)
def test_contradictory_shardings_are_refused_before_compilation(kind: str) -> None:
    for side in make_sides(2):
        with pytest.raises(ValueError, match=r"(?i)device|memory|mesh|shard"):
            CONTRADICTIONS[kind](side)


def test_compatible_shardings_are_lowered() -> None:
    for k in make_sides(2):
        k.jit(lambda v, w: v).lower(k.struct(k.first), k.struct(k.last))  # one is not used
        k.jit(add, in_shardings=k.first).lower(k.struct(k.last))
        k.jit(lambda v, w: v + w).trace(k.struct(k.first), k.struct(k.last))
        k.jit(lambda v, w: v + w).eval_shape(k.struct(k.first), k.struct(k.last))


def donate(k: Any, seed: int, stated: bool) -> list[bool]:
    """Launches with two donated arguments of random types; returns whether each is deleted."""
    r = random.Random(seed)
    kinds = (np.float32, np.int32, np.int8, np.int16)
    given = [(r.choice((8, 16, 32)), r.choice(kinds), r.choice(("x", None))) for _ in range(2)]
    steps: list[Callable[[Any], Any]] = [
        lambda v: k.xp.sum(v, dtype=v.dtype), lambda v: v * 2, lambda v: v[:2] * 3,
        lambda v: v[:8] * 3, lambda v: v.reshape(4, -1) * 2, lambda v: (v * 2).astype(np.float32),
    ]  # fmt: skip
    first, second = r.choice(steps), r.choice(steps)
    options = {"out_shardings": k.over()} if stated else {}
    arrays = [k.put(np.arange(n, dtype=dtype), k.over(axis)) for n, dtype, axis in given]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        k.jit(lambda v, w: (first(v), second(w)), donate_argnums=(0, 1), **options)(*arrays)
    return [array.is_deleted() for array in arrays]


@pytest.mark.parametrize("stated", [False, True])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_launch_takes_the_donated_arguments_that_jax_takes(size: int, stated: bool) -> None:
    sides = make_sides(size)
    is_other = not plugrt.get_backend().platform_version.startswith("jaxlib")
    for k in sides:
        k.over = lambda *spec, k=k: k.m.sharding.NamedSharding(k.mesh, k.P(*spec))
    taken = []
    for seed in range(40):
        ours, theirs = (donate(k, seed, stated) for k in sides)
        # Where the results' shardings are known, JAX pairs by elements what XLA pairs by bytes, so
        # plugrt may delete more. Elsewhere XLA alone decides, differently in each version.
        same = sum(ours) >= sum(theirs) if size == 1 or stated else ours == theirs
        assert same or (is_other and size > 1 and not stated), f"seed {seed}: {ours} and {theirs}"
        taken += ours
    assert {*taken} == {True, False}


def test_a_result_has_the_memory_of_the_argument_that_names_it() -> None:
    """An argument before it has parts of the same size, but another dtype, and is kept."""
    for k in make_sides(2):
        whole = k.m.sharding.NamedSharding(k.mesh, k.P())
        f = k.jit(lambda v, w: w * 2 + v[0], donate_argnums=(0, 1), out_shardings=whole)
        v, w = (k.put(np.arange(8, dtype=kind), whole) for kind in (np.int32, np.float32))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            f(v, w)
        assert (v.is_deleted(), w.is_deleted()) == (False, True)


@pytest.mark.parametrize("option", ["in_shardings", "out_shardings"])
def test_a_device_is_no_sharding(option: str) -> None:
    for k in make_sides(1):
        device = k.mesh.devices.flat[0]
        for given in (device, [device], "x", 1):
            with pytest.raises(TypeError, match=option):
                k.jit(add, **{option: given})
    device = plugrt.devices()[0]
    with pytest.raises(TypeError, match=re.escape(f"write SingleDeviceSharding({device!r})")):
        plugrt.jit(add, **{option: device})  # type: ignore[call-overload]


def test_a_constraint_without_devices_divides_the_program() -> None:
    """Differs from JAX: a constraint over an `AbstractMesh`, where nothing else names devices, or
    what does is one device | it is ignored | the program is divided over as many devices, and
    `DeviceMismatch` beside an argument that is committed to one.
    """
    ours, theirs = make_sides(2)
    for k, expected in ((ours, "NamedSharding"), (theirs, "SingleDeviceSharding")):
        f = k.jit(lambda v, k=k: k.constrain(v, over_shape(k, 2)))
        assert type(f(X).sharding).__name__ == expected
    assert theirs.jit(lambda v: theirs.constrain(v, over_shape(theirs, 2)))(
        theirs.put(X, theirs.last)
    ).sharding.device_set == {theirs.last_device}
    with pytest.raises(DeviceMismatch, match="any 2 devices"):
        ours.jit(lambda v: ours.constrain(v, over_shape(ours, 2)))(ours.put(X, ours.last))


@pytest.mark.parametrize("shape", [(-8,), (2, -1)])
def test_a_negative_dimension_is_refused_with_the_argument(shape: tuple[int, ...]) -> None:
    struct = plugrt.ShapeDtypeStruct(shape, np.float32)
    f = plugrt.jit(lambda v, w: v + 1)
    for ask in (f.lower, f.trace, f.eval_shape):
        with pytest.raises(ShapeError, match=re.escape(f"argument w has the shape {shape}")):
            ask(X, struct)


def test_each_leaf_is_constrained_on_its_own_devices() -> None:
    """Same as JAX: outside of a traced function `with_sharding_constraint` of a pytree places each
    leaf by itself; within one all are on the same devices.
    """
    for k in make_sides(2):
        for x, y in ((X, X), (k.put(X), k.put(X)), (k.a, k.put(X, k.last))):
            found = k.constrain({"rows": x, "last": y}, {"rows": k.rows, "last": k.last})
            assert [found[name].sharding for name in ("rows", "last")] == [k.rows, k.last]
            np.testing.assert_array_equal(found["last"], X)
        with pytest.raises(ValueError, match="device"):
            k.constrain((k.put(X, k.last), k.put(X, k.last)), (k.rows, k.last))
        with pytest.raises(ValueError, match="device"):
            k.jit(lambda x, k=k: k.constrain((x, x), (k.rows, k.last)))(X)


@pytest.mark.parametrize("within", ["lower", "compile", "trace"])
def test_a_program_is_compiled_for_the_default_device_of_its_lowering(within: str) -> None:
    """Same as JAX: `lower` reads the setting `default_device`, `trace` and `compile` do not."""
    for k in make_sides(2):
        stage: Any = k.jit(add)
        for step in ("trace", "lower", "compile"):
            with k.m.default_device(k.last_device) if step == within else nullcontext():
                stage = getattr(stage, step)(*([X] if step == "trace" else []))
        expected = k.last_device if within == "lower" else k.mesh.devices.flat[0]
        assert stage(X).sharding.device_set == {expected}


def test_a_pmap_in_the_context_of_a_mesh() -> None:
    """Differs from JAX: `pmap` within `set_mesh` | a ValueError: the context's mesh is not the
    map's | runs on its own devices, as without.
    """
    ours, theirs = make_sides(2)
    found = in_context(ours, lambda: ours.m.pmap(add)(X[:2]))
    np.testing.assert_array_equal(found, X[:2] + 1)
    with pytest.raises(ValueError, match="context mesh"):
        in_context(theirs, lambda: theirs.m.pmap(add)(X[:2]))


def test_a_pmap_within_another() -> None:
    """Differs from JAX: `pmap` within `pmap` | a ValueError | maps over both axes, on a device for
    each pair; a ValueError where the inner one has `devices=` or `backend=`.
    """
    ours, theirs = make_sides(2)
    v = X.reshape(2, 2, 16)

    def call(k: Any, **options: Any) -> Any:
        return k.m.pmap(lambda v: k.m.pmap(add, **options)(v))(v)

    np.testing.assert_array_equal(call(ours), v + 1)
    with pytest.raises(ValueError, match="context mesh"):
        call(theirs)
    for k in (ours, theirs):
        with pytest.raises(ValueError, match=r"context mesh|outermost pmap"):
            call(k, devices=[*k.mesh.devices.flat])


def test_names_that_jax_removed() -> None:
    """Differs from JAX: `device_put_sharded`, `device_put_replicated` | removed in 0.10 | are
    there, with the same arguments.
    """
    for name in ("device_put_sharded", "device_put_replicated"):
        assert (hasattr(plugrt, name), hasattr(jax, name)) == (True, False)


def test_a_dimension_left_to_the_compiler_is_whole_on_one_device() -> None:
    k = make_side(plugrt, plugrt.array_api, plugrt.devices(), (1,))
    left = plugrt.sharding.NamedSharding(k.mesh, k.P(k.P.UNCONSTRAINED, None))
    assert describe(k.jit(add, out_shardings=left)(X)) == describe(k.c)


def test_device_is_the_one_device_of_a_mesh() -> None:
    k = make_side(plugrt, plugrt.array_api, plugrt.devices(), (1,))
    assert k.a.device is plugrt.devices()[0]
