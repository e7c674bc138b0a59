"""Structs with a sharding: they are lowered like arrays, or refused by name."""

from __future__ import annotations

import itertools
import random
from types import SimpleNamespace
from typing import Any

import jax as untyped_jax
import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt.errors import (
    ArgumentError,
    ArgumentMismatch,
    ArgumentTypeError,
    DeviceMismatch,
    FailedPrecondition,
    InvalidArgument,
    NotAnArray,
    PlugrtError,
)
from plugrt.interface import DeviceDescription
from plugrt.layout import Format, Layout
from plugrt.sharding import AbstractMesh, Mesh, NamedSharding, SingleDeviceSharding
from plugrt.sharding import PartitionSpec as P
from support.effort import seeds

S = plugrt.ShapeDtypeStruct
jax: Any = untyped_jax

FUNCTIONS = [
    lambda a, b: a + b,
    lambda a, b: (a @ b.T, b),
    lambda a, b: xp.sum(a, axis=0) - 1,
    lambda a, b: {"a": a, "b": xp.exp(b) * 2},
    lambda a, b: a.reshape(4, 16) if a.shape == (8, 8) else b.reshape(64),
]


def places() -> list[Any]:
    """Returns shardings for an argument: none, of one device, and over meshes."""
    devices = plugrt.devices()
    mesh, line = Mesh(np.array(devices[:4]).reshape(2, 2), ("x", "y")), Mesh(devices[:4], "x")
    backwards = Mesh(devices[3::-1], "x")
    return [
        None, SingleDeviceSharding(devices[0]), SingleDeviceSharding(devices[2]),
        NamedSharding(mesh, P("x")), NamedSharding(mesh, P("y", "x")), NamedSharding(mesh, P()),
        NamedSharding(line, P(None, "x")), NamedSharding(backwards, P("x")),
    ]  # fmt: skip


def forms(x: Any) -> dict[str, Any]:
    """Returns structs and similar objects that describe an argument."""
    place = x.sharding if getattr(x, "committed", False) else None
    stated = S(x.shape, x.dtype, place)
    duck = SimpleNamespace(shape=x.shape, dtype=x.dtype, sharding=place)
    jax_struct = jax.ShapeDtypeStruct(x.shape, x.dtype)
    if isinstance(place, SingleDeviceSharding):
        there = jax.sharding.SingleDeviceSharding(jax.devices("cpu")[place.device.id])
        jax_struct = jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=there)
    elif place is not None:
        mine = np.vectorize(lambda d: jax.devices("cpu")[d.id], otypes=[object])(place.mesh.devices)
        over = jax.sharding.Mesh(mine, place.mesh.axis_names)
        there = jax.sharding.NamedSharding(over, jax.sharding.PartitionSpec(*place.spec))
        jax_struct = jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=there)
    formatted = S(x.shape, x.dtype, None if place is None else Format(None, place))
    return {"struct": stated, "format": formatted, "duck": duck, "jax": jax_struct}


def outcome(f: Any, arguments: Any) -> Any:
    try:
        lowered = f.lower(*arguments)
        compiled = lowered.compile()
    except PlugrtError as error:
        return type(error), str(error)
    return lowered.as_text(), compiled.input_shardings, compiled.out_info, compiled.in_avals


@pytest.mark.parametrize("seed", seeds(12))
def test_each_abstract_form_is_lowered_as_the_array_is(seed: int) -> None:
    draw = random.Random(seed)
    where = [draw.choice(places()) for _ in range(2)]
    if draw.random() < 0.5:
        where[1] = where[0]
    dtype = draw.choice([np.float32, np.int32])
    host = np.arange(64, dtype=dtype).reshape(8, 8)
    arrays = [host if at is None else plugrt.device_put(host, at) for at in where]
    asked = draw.choice([{}, {}, {"out_shardings": draw.choice(places())}])
    f = plugrt.jit(draw.choice(FUNCTIONS), **asked)
    expected = outcome(f, arrays)
    described = [forms(x) for x in arrays]
    for form in described[0]:
        assert outcome(f, [each[form] for each in described]) == expected, form
    if len(expected) == 4:  # the program's avals describe the same call
        assert outcome(f, expected[3][0]) == expected


def test_a_compiled_function_refuses_what_is_placed_otherwise() -> None:
    host = np.arange(64, dtype=np.float32).reshape(8, 8)
    every = [at for at in places() if at is not None]
    for own, other in itertools.product(every, every):
        compiled = plugrt.jit(lambda v: v + 1).lower(S((8, 8), "float32", own)).compile()
        x = plugrt.device_put(host, other)
        if own.is_equivalent_to(other, 2):
            np.testing.assert_array_equal(compiled(x), host + 1)
        else:
            with pytest.raises(ArgumentMismatch):
                compiled(x)
    [gathered, *_] = places()[1:]
    compiled = plugrt.jit(lambda v: v + 1).lower(S((8, 8), "float32", gathered)).compile()
    with pytest.raises(ArgumentMismatch, match="argument v"):
        compiled(plugrt.pmap(lambda v: v)(host))


@pytest.mark.parametrize("count", [4, 64])
def test_an_abstract_mesh_is_lowered_for_absent_devices(count: int) -> None:
    x = P("x")
    rows = NamedSharding(AbstractMesh((count,), ("x",)), x)
    struct = S((64, 2), "float32", rows)
    host = np.ones((64, 2), np.float32)
    plain = S((64, 2), "float32")
    over = jax.sharding.AbstractMesh((count,), ("x",), (jax.sharding.AxisType.Auto,))
    there = jax.sharding.NamedSharding(over, jax.sharding.PartitionSpec("x"))
    of_jax = jax.ShapeDtypeStruct((64, 2), "float32", sharding=there)
    lowered = [
        plugrt.jit(lambda v: v * 2).lower(struct),
        plugrt.jit(lambda v: v * 2).lower(of_jax),
        plugrt.jit(lambda v: v * 2, in_shardings=rows).lower(plain),
        plugrt.jit(lambda v: v * 2, out_shardings=rows).lower(host),
        plugrt.jit(lambda v: plugrt.with_sharding_constraint(v * 2, rows)).lower(host),
    ]
    for each in lowered:
        assert f"mhlo.num_partitions = {count}" in each.as_text()
        assert f'<["x"={count}]>' in each.as_text()
    of_structs, of_options = lowered[:2], lowered[2:]
    for each in of_structs:
        with pytest.raises(FailedPrecondition, match="AbstractMesh, which has no devices: name"):
            each.compile()
    for each in of_options:
        if count > plugrt.device_count():
            with pytest.raises(InvalidArgument, match=rf"over {count} devices.*topology"):
                each.compile()
        else:
            np.testing.assert_array_equal(each.compile()(host), host * 2)
    other = S((64, 2), "float32", NamedSharding(AbstractMesh((2,), ("x",)), x))
    with pytest.raises(DeviceMismatch, match=rf"any {count} devices"):
        plugrt.jit(lambda a, b: a + b).lower(struct, other).as_text()


def test_devices_are_named_when_a_program_over_an_abstract_mesh_is_compiled() -> None:
    """A program of such structs needs them.

    Same as JAX: `compile(device_assignment=)`, which refuses devices that have no argument.
    """
    for m in (plugrt, jax):
        auto = (m.sharding.AxisType.Auto,)
        shape = m.sharding.AbstractMesh((2,), ("x",), auto)
        rows, spec = m.sharding.NamedSharding, m.sharding.PartitionSpec
        struct = m.ShapeDtypeStruct((8, 2), "float32", sharding=rows(shape, spec("x")))
        traced = m.jit(lambda v: v * 2).trace(struct)
        lowered = traced.lower(lowering_platforms=("tpu",))
        devices = m.devices()[3:5]
        compiled = lowered.compile(device_assignment=tuple(devices))
        place = rows(m.sharding.Mesh(np.array(devices, object), "x", auto), spec("x"))
        out = compiled(m.device_put(np.ones((8, 2), np.float32), place))
        np.testing.assert_array_equal(out, np.full((8, 2), 2))
        assert out.sharding == place
        with pytest.raises(ValueError, match=r"device_assignment has 1|must match the length"):
            lowered.compile(device_assignment=tuple(m.devices()[:1]))
        with pytest.raises(RuntimeError, match=r"has no devices|cannot be `None`"):
            traced.lower(lowering_platforms=("cpu",)).compile()
        there = m.jit(lambda v: v * 2).lower(m.device_put(np.ones(3), m.devices()[1]))
        there.compile(device_assignment=(m.devices()[1],))
        with pytest.raises(ValueError, match=r"where its arguments are|must match the device_ass"):
            there.compile(device_assignment=(m.devices()[2],))
    with pytest.raises(ArgumentError, match="device_assignment or topology"):
        plugrt.jit(lambda v: v).lower(1).compile(device_assignment=devices, topology="cpu")
    with pytest.raises(ArgumentTypeError, match="is a sequence of"):
        plugrt.jit(lambda v: v).lower(1).compile(device_assignment=("cpu:0",))


def test_layouts_weak_types_and_wrong_places() -> None:
    device = plugrt.devices()[0]
    turned = Format(Layout((1, 0)), SingleDeviceSharding(device))
    struct = S((4, 8), "float32", turned)
    assert struct.format == turned
    compiled = plugrt.jit(lambda v: v + 1).lower(struct).compile()
    [[stated], _] = compiled.input_formats
    assert stated.layout.major_to_minor == (1, 0)
    weak = S((3,), "float32", weak_type=True)
    f, half = plugrt.jit(lambda a, b: a + b), S((3,), "float16")
    assert f.eval_shape(weak, half).dtype == np.float16
    assert f.eval_shape(weak, weak).weak_type
    for wrong in ("x", device, Layout((1, 0)), Format(Layout.AUTO)):
        with pytest.raises(TypeError, match="ShapeDtypeStruct has the"):
            S((4, 8), "float32", wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="names 2 dimensions"):
        S((8,), "float32", NamedSharding(Mesh([device], "x"), P(None, "x")))
    with pytest.raises(TypeError, match="argument v has the sharding 'x'"):
        plugrt.jit(lambda v: v).lower(SimpleNamespace(shape=(2,), dtype=np.float32, sharding="x"))
    other = SingleDeviceSharding(plugrt.devices()[1])
    both = SimpleNamespace(shape=(4, 8), dtype=np.float32, format=turned, sharding=other)
    with pytest.raises(ValueError, match="state one of them"):
        plugrt.jit(lambda v: v).lower(both)
    both.sharding = turned.sharding
    assert (
        plugrt.jit(lambda v: v).lower(both).in_avals
        == plugrt.jit(lambda v: v).lower(struct).in_avals
    )


@pytest.mark.parametrize("seed", seeds(6))
def test_like_gives_the_struct_that_lowers_as_the_array(seed: int) -> None:
    """Same as JAX: `ShapeDtypeStruct.like` has the sharding of a committed array."""
    draw = random.Random(seed)
    host = np.arange(64, dtype=draw.choice([np.float32, np.int32])).reshape(8, 8)
    f = plugrt.jit(lambda a, b: a + b)
    for place in places():
        x: Any = host if place is None else plugrt.device_put(host, place)
        struct = S.like(x)
        assert struct == S(x.shape, x.dtype, place)
        assert S.like(struct) == struct
        assert struct.update() == struct
        assert struct.update(sharding=None) == S.like(host)
        assert outcome(f, (struct, host)) == outcome(f, (x, host))
        theirs = jax.ShapeDtypeStruct.like(host).update(shape=(2, 32), weak_type=True)
        mine = S.like(host).update(shape=(2, 32), weak_type=True)
        assert [mine.shape, mine.dtype, mine.weak_type, mine.sharding, len(mine)] == [
            theirs.shape, theirs.dtype, theirs.weak_type, theirs.sharding, len(theirs)
        ]  # fmt: skip
    assert S.like(plugrt.device_put(host)).sharding is None
    for number in (True, 2, 2.5, 2j, np.float16(1)):
        mine, theirs = S.like(number), jax.ShapeDtypeStruct.like(number)
        assert (mine.dtype, mine.weak_type) == (theirs.dtype, theirs.weak_type)


def test_wrong_updates() -> None:
    """Differs from JAX: names that `ShapeDtypeStruct.update` lacks | are ignored | are refused."""
    here = SingleDeviceSharding(plugrt.devices()[0])
    turned = S((8, 4), "float32", Format(Layout((1, 0)), here))
    assert turned.update(shape=(4, 8)).format == turned.format
    assert turned.update(sharding=Format(None, here)).format == Format(None, here)
    with pytest.raises(ValueError, match=r"has the layout .* has none"):
        turned.update(sharding=here)
    with pytest.raises(TypeError, match="foo"):
        turned.update(foo=1)
    with pytest.raises(NotAnArray, match=r"x of ShapeDtypeStruct.like is \[1\]"):
        S.like([1])
    with pytest.raises(TypeError, match="without dimensions"):
        len(S((), "float32"))


def test_a_mesh_refuses_devices_of_a_topology() -> None:
    absent = [DeviceDescription(i, 0, "far") for i in range(2)]
    with pytest.raises(InvalidArgument, match=r"DeviceDescription.*AbstractMesh.*topology="):
        Mesh(absent, "x")


def test_types_are_jaxs() -> None:
    """Same as JAX: `typeof` of arrays, traced arrays, host data, numbers and structs."""
    x = np.ones((2, 3), np.int8)
    for value in (True, 1, 1.5, 2j, x, np.float32(2), jax.numpy.ones(3)):
        ours, theirs = plugrt.typeof(value), jax.typeof(value)
        shown = ours.shape, ours.dtype, ours.weak_type
        assert shown == (theirs.shape, theirs.dtype, theirs.weak_type), value
    mesh = NamedSharding(plugrt.make_mesh((2,), ("x",)), P("x"))
    assert (
        plugrt.typeof(plugrt.device_put(x, mesh))
        is plugrt.typeof(x)
        is plugrt.typeof(S((2, 3), "int8"))
    )
    seen: list[Any] = []
    plugrt.jit(lambda v: seen.append(plugrt.typeof(v)))(x)
    assert seen == [plugrt.typeof(x)]
    for m in (plugrt, jax):
        kinds = m.sharding.AxisType
        grid = m.make_mesh((2, 2), ("x", "y"), (kinds.Explicit, kinds.Auto))
        place = m.sharding.NamedSharding(grid, m.sharding.PartitionSpec("x", "y"))
        array = m.device_put(np.ones((2, 4), np.int8), place)
        m.jit(lambda v, m=m: seen.append(m.typeof(v)))(array)
        struct = m.ShapeDtypeStruct((2, 4), np.int8, sharding=place)
        assert {str(t) for t in (m.typeof(array), m.typeof(struct), seen[-1])} == {"int8[2@x,4]"}
    for wrong in ("a", [1]):
        with pytest.raises(NotAnArray, match="x of typeof"):
            plugrt.typeof(wrong)


@pytest.mark.parametrize("jitted", [False, True])
def test_arrays_like_a_struct_are_where_it_says(jitted: bool) -> None:
    """Same as JAX: `zeros_like`, `ones_like` and `full_like` of a `ShapeDtypeStruct`."""
    mesh = plugrt.make_mesh((2,), ("x",))
    struct = plugrt.ShapeDtypeStruct((4, 2), np.int16, sharding=NamedSharding(mesh, P("x")))
    makers = (xp.zeros_like, xp.ones_like, xp.empty_like, lambda x: xp.full_like(x, 3))
    for make, value in zip(makers, (0, 1, None, 3), strict=True):
        made = plugrt.jit(lambda make=make: make(struct))() if jitted else make(struct)
        assert (made.shape, made.dtype) == ((4, 2), np.int16)
        assert made.sharding.is_equivalent_to(struct.sharding, 2)
        if value is not None:
            np.testing.assert_array_equal(made, np.full((4, 2), value, np.int16))
    abstract = struct.update(sharding=NamedSharding(mesh.abstract_mesh, P("x")))
    with plugrt.set_mesh(mesh):
        assert xp.zeros_like(abstract).sharding.is_equivalent_to(struct.sharding, 2)
    assert xp.zeros_like(abstract).sharding.num_devices == 1
    assert xp.zeros_like(struct, dtype=np.float32).dtype == np.float32
