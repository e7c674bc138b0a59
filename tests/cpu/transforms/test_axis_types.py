"""Types of mesh axes, empty meshes, and the smaller names of `jax.sharding`."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.errors import ArgumentError, ArgumentTypeError, InvalidArgument, StructureError
from plugrt.sharding import (
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
    get_abstract_mesh,
    get_mesh,
    make_single_device_sharding,
)
from support.jax_oracle import jax

Auto, Manual = AxisType.Auto, AxisType.Manual
P = PartitionSpec
MESH = plugrt.make_mesh((2, 2), ("x", "y"))
EMPTY = Mesh(np.empty((), object), ())
X = np.arange(8, dtype=np.float32)


def test_the_axes_of_a_mesh_are_auto() -> None:
    """Types of axes can be asked for.

    Same as JAX: `AxisType` of meshes, `Manual` within `shard_map`; empty meshes, and meshes as
    decorators.

    Differs from JAX: axes of `make_mesh` | `AxisType.Explicit` in 0.10, unless `axis_types` says
    otherwise | `AxisType.Auto`, unless `axis_types` says otherwise.
    """
    assert repr([*AxisType]) == "[Auto, Explicit, Manual]"
    for mesh in (MESH, plugrt.make_mesh((2, 2), ("x", "y"), (Auto, Auto)), MESH.abstract_mesh):
        assert (mesh.axis_types, mesh.auto_axes) == ((Auto, Auto), ("x", "y"))
        assert (mesh.manual_axes, mesh.explicit_axes) == ((), ())
        assert mesh.shape_tuple == (("x", 2), ("y", 2))
    one = Mesh(plugrt.devices()[:2], "x", axis_types=Auto)
    assert one.axis_types == (Auto,)


def test_an_abstract_mesh_tells_types_apart() -> None:
    mixed = MESH.update_axis_types({"y": Manual})
    assert mixed == AbstractMesh((2, 2), ("x", "y"), (Auto, Manual))
    assert (mixed.auto_axes, mixed.manual_axes) == (("x",), ("y",))
    assert mixed != MESH.abstract_mesh
    assert repr(mixed) == "AbstractMesh('x': 2, 'y': 2, axis_types=(Auto, Manual))"
    assert pickle.loads(pickle.dumps(mixed)) == mixed
    assert len({mixed, MESH.abstract_mesh, MESH.update_axis_types({})}) == 2


@pytest.mark.parametrize(
    ("types", "error", "message"),
    [
        ("Auto", ArgumentTypeError, "is a tuple of an AxisType for each axis; got 'Auto'"),
        ([Auto], ArgumentTypeError, "is a tuple of an AxisType"),
        ((Auto, Auto), InvalidArgument, "one type for each axis"),
    ],
)
def test_other_types_are_refused_by_name(types: Any, error: Any, message: str) -> None:
    for make in (
        plugrt.make_mesh,
        lambda n, names, kinds: Mesh(plugrt.devices()[:2], names, kinds),
    ):
        with pytest.raises(error, match=message):
            make((2,), ("x",), types)


def test_a_mesh_with_manual_axes_divides_nothing() -> None:
    mesh = MESH.update(axis_types=(Manual, Auto))
    uses = (
        lambda: NamedSharding(mesh, P("y")),
        lambda: plugrt.set_mesh(mesh),
        lambda: plugrt.sharding.use_mesh(mesh),
        lambda: plugrt.sharding.AUTO(mesh),
        lambda: plugrt.shard_map(lambda v: v, mesh=mesh, in_specs=P("x"), out_specs=P("x")),
    )
    for use in uses:
        with pytest.raises(InvalidArgument, match=r"\('x',\) of a Mesh are Manual: axes are so"):
            use()
    with mesh, pytest.raises(InvalidArgument, match="are Manual"):
        plugrt.pjit(lambda v: v + 1)(X)


def test_a_mesh_has_an_update() -> None:
    """Same as JAX: `update` of a `Mesh` returns one with devices."""
    there = jax.sharding.Mesh(np.array(jax.devices()[:4], object).reshape(2, 2), ("x", "y"))
    for mesh, kinds, devices in (
        (MESH, AxisType, plugrt.devices()),
        (there, jax.sharding.AxisType, jax.devices()),
    ):
        other = mesh.update(axis_names=("a", "b"), axis_types=(kinds.Explicit, kinds.Auto))
        assert (other.axis_names, other.axis_types) == (("a", "b"), (kinds.Explicit, kinds.Auto))
        assert [*other.devices.flat] == [*mesh.devices.flat]
        moved = mesh.update(np.array(devices[2:6], object).reshape(2, 2))
        assert (moved.axis_names, [*moved.devices.flat]) == (("x", "y"), devices[2:6])


def test_an_axis_that_a_spec_names_twice_is_refused_with_a_mesh() -> None:
    """Same as JAX: a spec may name an axis twice; a sharding of it is refused."""
    for spec, sharding, mesh in (
        (P, NamedSharding, MESH),
        (jax.P, jax.NamedSharding, jax.make_mesh((2, 2), ("x", "y"))),
    ):
        twice = spec("x", ("y", "x"))
        with pytest.raises(Exception, match=r"'x' twice|duplicate entries for `x`"):
            sharding(mesh, twice)
    with pytest.raises(InvalidArgument, match="names the axis 'x' twice"):
        P("x", unreduced={"x"})
    with plugrt.set_mesh(MESH), pytest.raises(InvalidArgument, match="'x' twice"):
        plugrt.jit(lambda v: v, in_shardings=P("x", "x"))(X)


def test_a_sharding_over_no_mesh_places_nothing() -> None:
    """Same as JAX: a sharding over an empty mesh is refused where it is used."""
    nowhere = NamedSharding(EMPTY, P())
    for use in (
        lambda: plugrt.jit(lambda v: v, out_shardings=nowhere)(X),
        lambda: plugrt.device_put(X, nowhere),
    ):
        with pytest.raises(InvalidArgument, match="its mesh is empty"):
            use()
    with pytest.raises(ValueError, match="empty NamedSharding"):
        jax.jit(lambda v: v, out_shardings=jax.NamedSharding(jax.sharding.Mesh(None, ()), jax.P()))(
            X
        )


def test_within_shard_map_axes_are_manual() -> None:
    seen: list[AbstractMesh] = []

    def body(x: Any) -> Any:
        seen.append(get_abstract_mesh())
        inner = NamedSharding(seen[-1], P("y"))
        return (
            plugrt.with_sharding_constraint(2 * x, inner) if len(seen[-1].manual_axes) == 1 else x
        )

    whole = plugrt.shard_map(body, mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    part = plugrt.shard_map(body, mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    assert np.array_equal(whole(X), X)
    assert np.array_equal(plugrt.jit(part)(X), 2 * X)
    assert [mesh.axis_types for mesh in seen] == [(Manual, Manual), (Manual, Auto)]


def test_a_shard_map_within_another_takes_the_mesh_that_it_finds() -> None:
    def outer(x: Any) -> Any:
        inner = plugrt.shard_map(
            lambda v: v + 1, mesh=get_abstract_mesh(), in_specs=P("y"), out_specs=P("y"),
            axis_names={"y"},
        )  # fmt: skip
        return inner(x)

    mapped = plugrt.shard_map(outer, mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    assert np.array_equal(plugrt.jit(mapped)(X), X + 1)


def test_an_empty_mesh_is_no_mesh() -> None:
    assert (EMPTY.empty, EMPTY.size, EMPTY.axis_names, EMPTY.local_devices) == (True, 0, (), [])
    assert Mesh(None, ()) == EMPTY  # type: ignore[arg-type]
    assert pickle.loads(pickle.dumps(EMPTY)) == EMPTY.local_mesh == EMPTY
    assert EMPTY.abstract_mesh == get_abstract_mesh() == AbstractMesh((), ())
    alone = Mesh(np.array(plugrt.devices()[0]), ())
    assert (alone.empty, alone.size) == (False, 1)
    with plugrt.set_mesh(MESH), plugrt.set_mesh(EMPTY):
        assert get_mesh().empty
    with MESH, EMPTY, pytest.raises(InvalidArgument, match="no mesh in the context"):
        plugrt.with_sharding_constraint(X, P("x"))
    for use in (
        lambda: EMPTY.client,
        lambda: plugrt.shard_map(lambda x: x, mesh=EMPTY, in_specs=P(), out_specs=P())(X),
    ):
        with pytest.raises(InvalidArgument, match="empty"):
            use()


def test_a_mesh_decorates_a_function() -> None:
    @MESH
    def divide(x: Any, *, by: float) -> Any:
        """Divides."""
        return plugrt.with_sharding_constraint(x / by, P("x"))

    assert divide.__doc__ == "Divides."
    made = plugrt.jit(divide, static_argnames="by")(X, by=2.0)
    assert made.sharding.spec == P("x")
    assert np.array_equal(made, X / 2)


def test_a_spec_is_as_a_tuple() -> None:
    spec, other = P("x", None, ("y", "z")), ("a",)
    assert (other + spec, spec + other) == (P("a", *spec), P(*spec, "a"))
    assert (spec.index("x"), spec.index(["y", "z"]), spec.count(None)) == (0, 2, 1)
    with pytest.raises(ValueError, match="not in tuple"):
        spec.index("y")
    assert P("x", unreduced=frozenset()) == P("x")


def test_a_spec_has_no_subclasses() -> None:
    """Same as JAX: a class derived from `PartitionSpec` is refused."""
    for base in (P, jax.P):
        with pytest.raises(TypeError, match=r"[Ss]ubclass"):
            type("Mine", (base,), {})


def test_specs_with_open_sums() -> None:
    """Same as JAX: specs with `unreduced` and `reduced` axes, which are for Explicit axes alone."""
    ours, theirs = (
        [
            spec("x", None, unreduced={"y"}),
            spec(unreduced={"y"}, reduced={"z"}),
            spec("x", unreduced={"z"}) + spec("a", unreduced={"b"}),
            spec("x").update(unreduced={"y"}),
            spec("x", reduced={"y"}).update(partitions=("a", "b")),
            pickle.loads(pickle.dumps(spec("x", unreduced={"y"}))),
        ]
        for spec in (P, jax.P)
    )
    for one, other in zip(ours, theirs, strict=True):
        for name in ("partitions", "unreduced", "reduced"):
            assert getattr(one, name) == getattr(other, name)
    assert repr(ours[1]) == "P(unreduced={'y'}, reduced={'z'})"
    assert len({*ours, P("x", unreduced={"y"}), P("x", reduced={"y"}), P("x")}) == 7
    for wrong in (
        lambda spec: operator.add(spec("x", unreduced={"y"}), ("z",)),
        lambda spec: operator.add(("z",), spec("x", reduced={"y"})),
        lambda spec: spec("x", unreduced={"x"}),
        lambda spec: spec(unreduced={"x"}, reduced={"x"}),
        lambda spec: spec(unreduced=("x",)),
        lambda spec: spec("x").update(entries=()),
    ):
        for spec in (P, jax.P):
            with pytest.raises((TypeError, ValueError)):
                wrong(spec)
    mesh = plugrt.make_mesh((2, 1), ("x", "y"))
    for axes in ({"unreduced": {"y"}}, {"reduced": {"y"}}):
        with pytest.raises(InvalidArgument, match=r"educed=.*'y'.*within shard_map"):
            NamedSharding(mesh, P("x", **axes))
        with pytest.raises(InvalidArgument, match="'y' is not Explicit"):
            plugrt.shard_map(lambda v: v, mesh=mesh, in_specs=P("x", **axes), out_specs=P())
    with pytest.raises(InvalidArgument, match="names the axis 'a', and the mesh has"):
        NamedSharding(mesh, P("x", unreduced={"a"}))


def test_the_sharding_of_one_device() -> None:
    device = plugrt.devices()[1]
    assert make_single_device_sharding(device) is plugrt.sharding.SingleDeviceSharding(device)
    kind = device.memories()[0].kind
    assert make_single_device_sharding(device, memory_kind=kind).memory_kind is None  # the default


@pytest.mark.parametrize("within", [False, True])
def test_a_constraint_to_nothing_is_refused(within: bool) -> None:
    def constrain(x: Any) -> Any:
        return plugrt.with_sharding_constraint(x, None)

    with pytest.raises(
        InvalidArgument, match="with_sharding_constraint takes a sharding; got None"
    ):
        (plugrt.jit(constrain) if within else constrain)(X)


def _mesh(m: Any) -> Any:
    return m.make_mesh((2, 2), ("x", "y"), (m.sharding.AxisType.Auto,) * 2)


def _abstract(m: Any) -> Any:
    return m.sharding.AbstractMesh((2, 2), ("x", "y"))


def _use(m: Any) -> Any:
    with m.sharding.use_abstract_mesh(_mesh(m)):
        return m.sharding.get_abstract_mesh().axis_names


def _constrain(m: Any) -> Any:
    rows = m.sharding.NamedSharding(_mesh(m), m.sharding.PartitionSpec("x"))
    constrain = (m.lax if m is jax else m).with_sharding_constraint
    return constrain({"a": X, "b": X}, {"a": rows, "b": None})["b"].shape


def _over(m: Any, kind: str, *entries: Any, **options: Any) -> Any:
    types = (getattr(m.sharding.AxisType, kind),) * 2
    mesh = m.make_mesh((2, 2), ("x", "y"), types)
    return m.sharding.NamedSharding(mesh, m.sharding.PartitionSpec(*entries, **options))


def _assert_type(m: Any) -> Any:
    rows = _over(m, "Explicit", "x")
    return (m.lax if m is jax else m).with_sharding_constraint(m.device_put(X, rows), rows).shape


def _leave_open(m: Any) -> Any:
    return _over(m, "Auto", m.sharding.PartitionSpec.UNCONSTRAINED).shard_shape((4,))


def _give_terms(m: Any) -> Any:
    terms = _over(m, "Explicit", "x", unreduced={"y"})
    return m.make_array_from_process_local_data(terms, X).shape


def _call_back(m: Any) -> Any:
    rows, whole = m.sharding.PartitionSpec("x"), m.sharding.PartitionSpec()

    def f(v: Any) -> Any:
        return m.pure_callback(np.asarray, m.ShapeDtypeStruct(v.shape, v.dtype), v)

    return m.jit(m.shard_map(f, mesh=_mesh(m), in_specs=rows, out_specs=whole))(X).shape


def _name_program(m: Any) -> str:
    def f(v: Any) -> Any:
        return v

    text: str = m.pmap(f).lower(np.ones((2, 3), np.float32)).as_text()
    return text.split()[1]


DIFFERENT: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "devices of a shape": (lambda m: _abstract(m).devices, AttributeError, ValueError),
    "kind of devices": (lambda m: _abstract(m) == _mesh(m).abstract_mesh, True, False),
    "an entry": (lambda m: tuple(m.sharding.PartitionSpec(3)), ArgumentTypeError, (3,)),
    "no shape": (_use, ("x", "y"), ValueError),
    "None among constraints": (_constrain, (8,), ValueError),
    "None for nothing": (
        lambda m: (m.lax if m is jax else m).with_sharding_constraint([], None),
        InvalidArgument,
        [],
    ),
    "a constraint over Explicit axes": (_assert_type, (8,), ValueError),
    "a dimension that is open": (_leave_open, InvalidArgument, (4,)),
    "terms of a sum": (_give_terms, NotImplementedError, (8,)),
    "a result of Python": (_call_back, ArgumentError, (4,)),
    "a struct that varies": (
        lambda m: m.ShapeDtypeStruct((2,), X.dtype, manual_axis_type=None).shape,
        ArgumentTypeError,
        (2,),
    ),
    "a pmap's sharding": (
        lambda m: hasattr(m.pmap(lambda v: v)(X).sharding, "sharding_spec"),
        False,
        False,
    ),
    "a pmap's program": (_name_program, "@jit_f", "@jit__fun"),
}
"""Calls, with their result or error here, and in JAX."""


@pytest.mark.parametrize("name", DIFFERENT)
def test_smaller_names_that_differ(name: str) -> None:
    """Meshes without devices have axes alone, and arguments are checked where they are given.

    Same as JAX: shardings of results of `pmap` have no `sharding_spec` (0.10 has no
    `PmapSharding`).

    Differs from JAX: `devices`, `device_ids` and the like of an `AbstractMesh` | a ValueError |
    an AttributeError, as `hasattr` expects.

    Differs from JAX: the kind of devices in an `AbstractMesh` (`AbstractDevice`) | in
    `Mesh.abstract_mesh`, which differs from one without it | axes alone, so that both are equal.

    Differs from JAX: an entry of a `PartitionSpec` that names no axis, as a number | accepted, and
    refused where the spec meets a mesh | refused where the spec is made.

    Differs from JAX: a `Mesh` in `use_abstract_mesh` | refused | its shape is taken.

    Differs from JAX: None in a pytree of `with_sharding_constraint`'s shardings | refused, and
    ignored where there are no arrays | leaves a part unconstrained; alone it is refused.

    Differs from JAX: `with_sharding_constraint` over Explicit axes | refuses a `NamedSharding`;
    a `PartitionSpec` asserts the type | asserts the type with either.

    Differs from JAX: `UNCONSTRAINED` in the sharding of an array, a struct or `shard_shape` | is
    accepted, or a KeyError | `InvalidArgument`.

    Differs from JAX: `make_array_from_process_local_data` to `unreduced` axes | accepted |
    `Unimplemented`.

    Differs from JAX: the result of a callback in `shard_map` | is the same along all axes, but for
    those in the `manual_axis_type` of its `ShapeDtypeStruct` | differs along the axes that an
    argument differs along; structs have no `manual_axis_type`.

    Differs from JAX: the name of the module of a `pmap` of `f` | `jit__fun`, in earlier releases
    `pmap_f` | `jit_f`, as of any jitted function.
    """
    call, *expected = DIFFERENT[name]
    for module, outcome in zip((plugrt, jax), expected, strict=True):
        if isinstance(outcome, type):
            with pytest.raises(outcome):
                call(module)
        else:
            assert call(module) == outcome, module.__name__


def test_a_pytree_of_local_data() -> None:
    rows, whole = NamedSharding(MESH, P("x")), NamedSharding(MESH, P())
    data = {"a": X, "b": [X, X[:2]]}
    made = plugrt.make_array_from_process_local_data({"a": rows, "b": whole}, data)
    assert (made["a"].sharding, made["b"][1].sharding) == (rows, whole)
    assert np.array_equal(made["b"][1], X[:2])
    sized = plugrt.make_array_from_process_local_data(rows, data, {"a": (8,), "b": None})
    assert [x.shape for x in (sized["a"], *sized["b"])] == [(8,), (8,), (2,)]
    with pytest.raises(StructureError, match=r"sharding=.* is not a pytree prefix of local_data"):
        plugrt.make_array_from_process_local_data({"a": rows}, data)
