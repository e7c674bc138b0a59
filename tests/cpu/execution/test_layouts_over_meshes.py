"""Layouts of arrays over several devices: `Format` with shardings of meshes, beside JAX."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plugrt
from plugrt import ShapeDtypeStruct, device_put, devices, jit, pmap
from plugrt import array_api as xp
from plugrt.errors import (
    ArgumentError,
    ArgumentMismatch,
    FloatingPointFault,
    InvalidArgument,
    ShapeError,
    Unimplemented,
)
from plugrt.layout import Format, Layout
from plugrt.serialize_executable import deserialize_and_load, serialize
from plugrt.sharding import (
    AbstractMesh,
    GSPMDSharding,
    Mesh,
    NamedSharding,
    PositionalSharding,
    SingleDeviceSharding,
)
from plugrt.sharding import PartitionSpec as P
from support.behaviour import behaviour
from support.jax_oracle import jax
from support.platforms import capabilities

pytestmark = [
    pytest.mark.skipif(not capabilities().layouts, reason="the platform has no layouts"),
    pytest.mark.skipif(len(devices()) < 4, reason="needs four devices"),
]

X = np.arange(32, dtype=np.float32).reshape(4, 8)
TURNED = Layout((1, 0))
AUTO = Format(Layout.AUTO)
ORDERS = [devices()[:4], [devices()[i] for i in (2, 0, 3, 1)]]
"""The devices of a mesh, in their order and in another."""


def mesh(order: int = 0) -> Mesh:
    return Mesh(np.array(ORDERS[order]).reshape(2, 2), ("x", "y"))


def named(*spec: Any, order: int = 0) -> NamedSharding:
    return NamedSharding(mesh(order), P(*spec))


def turned(*spec: Any, order: int = 0) -> Format:
    return Format(TURNED, named(*spec, order=order))


SHARDINGS: dict[str, Callable[[], Any]] = {
    "both": lambda: named("x", "y"),
    "rows": lambda: named("x"),
    "columns": lambda: named(None, "y"),
    "columns by both": lambda: named(None, ("y", "x")),
    "whole": lambda: named(),
    "other order": lambda: named("x", "y", order=1),
    "mesh of one": lambda: NamedSharding(Mesh(np.array(devices()[1:2]), ("x",)), P("x")),
    "one device": lambda: SingleDeviceSharding(devices()[2]),
    "positional": lambda: PositionalSharding(devices()[:4]).reshape(2, 2),
    "gspmd": lambda: GSPMDSharding.get_replicated(devices()[:3]),
}


def put_default(host: Any, to: Format) -> Any:
    return device_put(device_put(host, to.sharding), to)


def put_otherwise(host: Any, to: Format) -> Any:
    return device_put(device_put(host, named(None, "x")), to)


def put_from_one(host: Any, to: Format) -> Any:
    return device_put(device_put(host, Format(Layout(tuple(range(host.ndim))), here())), to)


def put_uncommitted(host: Any, to: Format) -> Any:
    return device_put(device_put(host), to)


def put_from_layout(host: Any, to: Format) -> Any:
    turn = Layout(tuple(reversed(range(host.ndim))))
    return device_put(device_put(host, Format(turn, named(None, "x", order=1))), to)


def compute(host: Any, to: Format) -> Any:
    return jit(lambda a: a, out_shardings=to)(host)


def compute_ahead(host: Any, to: Format) -> Any:
    aval = ShapeDtypeStruct(host.shape, host.dtype, to)
    return jit(lambda a: a, out_shardings=to).lower(aval).compile()(host)


def constrain(host: Any, to: Format) -> Any:
    return plugrt.with_sharding_constraint(host, to)


def make_of_callback(host: Any, to: Format) -> Any:
    return plugrt.make_array_from_callback(host.shape, to, lambda index: host[index])


def make_of_local_data(host: Any, to: Format) -> Any:
    return plugrt.make_array_from_process_local_data(to, host)


def make_of_parts(host: Any, to: Format) -> Any:
    assert to.sharding is not None
    parts = [
        device_put(host[index], Format(to.layout, SingleDeviceSharding(device)))
        for device, index in to.sharding.devices_indices_map(host.shape).items()
    ]
    return plugrt.make_array_from_single_device_arrays(host.shape, to.sharding, parts)


WAYS = [
    device_put, put_default, put_otherwise, put_from_one, put_uncommitted, put_from_layout, compute,
    compute_ahead, constrain, make_of_callback, make_of_local_data, make_of_parts,
]  # fmt: skip


def here() -> SingleDeviceSharding:
    return SingleDeviceSharding(devices()[0])


def order(x: Any) -> tuple[int, ...]:
    layout = x.layout if isinstance(x, Format) else x.format.layout
    assert isinstance(layout, Layout)
    return layout.major_to_minor


def check(x: Any, host: Any, to: Format) -> None:
    """Asserts that an array has a format, in each part too, and the contents of a host array."""
    assert isinstance(to.layout, Layout)
    assert x.sharding.is_equivalent_to(to.sharding, host.ndim)
    assert x.committed
    assert {order(x), *(order(s.data) for s in x.addressable_shards)} == {to.layout.major_to_minor}
    assert (x.shape, x.dtype) == (host.shape, host.dtype)
    assert np.asarray(x).tobytes() == host.tobytes()
    for shard in x.addressable_shards:
        assert np.asarray(shard.data).tobytes() == np.ascontiguousarray(host[shard.index]).tobytes()


@behaviour(4, "a layout orders each part of an array, however it is divided and made")
@pytest.mark.parametrize("where", SHARDINGS)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_an_array_in_a_layout(way: Callable[..., Any], where: str) -> None:
    for layout in (TURNED, Layout((0, 1))):
        to = Format(layout, SHARDINGS[where]())
        made = way(X, to)
        check(made, X, to)
        if made.sharding == to.sharding:  # a program on one device returns that device's sharding
            assert made.aval is device_put(X, to).aval
        np.testing.assert_array_equal(made + 1, X + 1)
        check(made, X, to)


@pytest.mark.parametrize("name", ["bool", "int8", "int32", "bfloat16", "float16", "complex64"])
@pytest.mark.parametrize("way", WAYS)
def test_dtypes_and_ranks_in_layouts(way: Callable[..., Any], name: str) -> None:
    dtype = getattr(ml_dtypes, name, name)
    for shape, spec in (((4, 2, 6), ("x", None, "y")), ((2, 4), (None, "y")), ((8, 2), ("x",))):
        host = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        for turn in itertools.islice(itertools.permutations(range(len(shape))), 3):
            to = Format(Layout(turn), named(*spec))
            check(way(host, to), host, to)


def test_scalars_and_arrays_without_elements() -> None:
    for host in (np.float32(2.5), np.zeros((0, 4), np.float32), np.zeros((4, 0), np.float32)):
        layout = Layout(tuple(reversed(range(host.ndim))))
        to = Format(layout, named() if not host.ndim else named("x"))
        check(device_put(host, to), np.asarray(host), to)
        assert device_put(2.5, Format(Layout(()), named())).weak_type


jax_mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")[:4]).reshape(2, 2), ("x", "y"))


def jax_format(layout: Any, *spec: Any) -> Any:
    from jax.experimental.layout import Format as JaxFormat
    from jax.experimental.layout import Layout as JaxLayout

    if isinstance(layout, Layout):
        layout = JaxLayout(layout.major_to_minor)
    elif layout is Layout.AUTO:
        layout = JaxLayout.AUTO
    if not spec:
        return JaxFormat(layout)
    return JaxFormat(
        layout, jax.sharding.NamedSharding(jax_mesh, jax.sharding.PartitionSpec(*spec))
    )


def describe(x: Any) -> Any:
    """Returns the order of dimensions and the spec of arrays and formats of either library."""
    if isinstance(x, tuple):
        return tuple(map(describe, x))
    found = getattr(x, "format", x)
    spec = getattr(found.sharding, "spec", None)
    return found.layout and found.layout.major_to_minor, spec if spec is None else tuple(spec)


class Ours:
    format = staticmethod(
        lambda layout, *spec: Format(layout, named(*spec)) if spec else Format(layout)
    )
    device_put = staticmethod(device_put)
    jit = staticmethod(jit)
    struct = ShapeDtypeStruct
    constrain = staticmethod(plugrt.with_sharding_constraint)
    device = devices()[0]
    make = staticmethod(plugrt.make_array_from_callback)
    disabled = staticmethod(lambda: plugrt.config.override(disable_jit=True))


class Theirs:
    format = staticmethod(jax_format)
    device_put = staticmethod(jax.device_put)
    jit = staticmethod(jax.jit)
    struct = jax.ShapeDtypeStruct
    constrain = staticmethod(jax.lax.with_sharding_constraint)
    device = jax.devices("cpu")[0]
    make = staticmethod(jax.make_array_from_callback)
    disabled = staticmethod(jax.disable_jit)


def both(lib: Any) -> Any:
    return lib.format(TURNED, "x", "y")


def plain(lib: Any) -> Any:
    return lib.format(None, "x", "y").sharding


def put(lib: Any) -> Any:
    return lib.device_put(X, both(lib))


def under_disabled(lib: Any) -> Any:
    y = put(lib)  # JAX's device_put to a Format does nothing where jit is disabled
    with lib.disabled():
        return lib.jit(lambda a: a * 2, in_shardings=both(lib), out_shardings=both(lib))(y)


def with_layout_of_struct(lib: Any, **options: Any) -> Any:
    aval = lib.struct((4, 8), np.float32, sharding=both(lib))
    compiled = lib.jit(lambda a: a * 2, **options).lower(aval).compile()
    return compiled.input_formats[0][0], compiled.output_formats


AS_JAX: dict[str, Callable[[Any], Any]] = {
    "put": put,
    "put again": lambda lib: lib.device_put(put(lib), both(lib)),
    "put nowhere else": lambda lib: lib.device_put(put(lib)),
    "put to its sharding": lambda lib: lib.device_put(put(lib), plain(lib)),
    "put elsewhere": lambda lib: lib.device_put(put(lib), lib.format(None, "x").sharding),
    "put to one device": lambda lib: lib.device_put(put(lib), lib.device),
    "put back": lambda lib: lib.device_put(put(lib), lib.format(Layout((0, 1)), "x", "y")),
    "put otherwise": lambda lib: lib.device_put(put(lib), lib.format(TURNED, None, "x")),
    "put donated": lambda lib: lib.device_put(put(lib), both(lib), donate=True),
    "copy": lambda lib: lib.device_put(put(lib), may_alias=False),
    "operator": lambda lib: put(lib) + put(lib),
    "jit": lambda lib: lib.jit(lambda a: a * 2)(put(lib)),
    "jit with other": lambda lib: lib.jit(lambda a, b: a @ b.T)(put(lib), X),
    "in_shardings, from host": lambda lib: lib.jit(lambda a: a * 2, in_shardings=both(lib))(X),
    "in_shardings without layout": lambda lib: lib.jit(lambda a: a * 2, in_shardings=plain(lib))(
        put(lib)
    ),
    "in_shardings": lambda lib: lib.jit(lambda a: a * 2, in_shardings=both(lib))(put(lib)),
    "out_shardings": lambda lib: lib.jit(lambda a: a * 2, out_shardings=both(lib))(X),
    "out_shardings without layout": lambda lib: lib.jit(
        lambda a: a * 2, out_shardings=plain(lib)
    )(put(lib)),
    "out_shardings, divided otherwise": lambda lib: lib.jit(
        lambda a: a * 2, out_shardings=lib.format(TURNED, "x")
    )(put(lib)),
    "prefixes": lambda lib: lib.jit(
        lambda a, b: (a + b, {"k": a - b}), in_shardings=(both(lib), None),
        out_shardings=(both(lib), {"k": lib.format(Layout((0, 1)), "x")}),
    )(put(lib), X)[0],
    "constraint": lambda lib: lib.constrain(X, both(lib)),
    "constraint of an array": lambda lib: lib.constrain(
        put(lib), lib.format(Layout((0, 1)), "x", "y")
    ),
    "constraint within": lambda lib: lib.jit(lambda a: lib.constrain(a.T * 2, both(lib)) + 1)(
        X.reshape(8, 4)
    ),
    "inner jit": lambda lib: lib.jit(
        lambda a: lib.jit(lambda b: b * 2, out_shardings=both(lib))(a) + 1
    )(X),
    "inner jit, first": lambda lib: lib.jit(
        lambda a: lib.jit(lambda b: b * 2, in_shardings=both(lib))(a)
    )(X),
    "callback": lambda lib: lib.make((4, 8), both(lib), lambda index: X[index]),
    "callback without layout": lambda lib: lib.make(
        (4, 8), lib.format(None, "x", "y"), lambda index: X[index]
    ),
    "disabled": under_disabled,
    "struct": with_layout_of_struct,
    "struct, in_shardings": lambda lib: with_layout_of_struct(lib, in_shardings=plain(lib)),
    "compiled, from host": lambda lib: lib.jit(lambda a: a * 2).lower(put(lib)).compile()(X),
    "donated": lambda lib: lib.jit(lambda a: a * 2, donate_argnums=0)(put(lib)),
    "donated, in its layout": lambda lib: lib.jit(
        lambda a: a * 2, donate_argnums=0, out_shardings=both(lib)
    )(put(lib)),
}  # fmt: skip


def can_choose_shardings() -> bool:
    """Whether the compiler divides results without a stated sharding as XLA does."""
    return devices()[0].platform == "cpu"


@pytest.mark.parametrize("case", AS_JAX)
def test_layouts_are_where_jax_has_them(case: str) -> None:
    """Compares the orders of dimensions, and the specs.

    Same as JAX: layouts over a mesh, in `device_put`, `jit`, structs, `with_sharding_constraint`
    and `make_array_from_callback`.
    """
    ours, theirs = (AS_JAX[case](lib) for lib in (Ours, Theirs))
    stated, expected = describe(ours), describe(theirs)
    if can_choose_shardings():
        assert stated == expected
    else:
        assert stated[0] == expected[0]
    if not isinstance(ours, tuple):
        np.testing.assert_array_equal(ours, theirs)


REFUSED_AS_JAX: dict[str, tuple[Callable[[Any], Any], str]] = {
    "another layout than in_shardings": (
        lambda lib: lib.jit(lambda a: a, in_shardings=both(lib))(lib.device_put(X, plain(lib))),
        r"argument a has the layout Layout\(major_to_minor=\(0, 1\)",
    ),
    "another layout in a struct": (
        lambda lib: with_layout_of_struct(lib, in_shardings=lib.format(Layout((0, 1)), "x", "y")),
        r"argument a has the layout Layout\(major_to_minor=\(1, 0\)",
    ),
    "an array for AUTO": (
        lambda lib: lib.jit(lambda a: a, in_shardings=lib.format(Layout.AUTO))(put(lib)),
        r"argument a is an array.*Layout\.AUTO.*ShapeDtypeStruct",
    ),
    "an array in the default layout for AUTO": (
        lambda lib: lib.jit(lambda a: a, in_shardings=lib.format(Layout.AUTO, "x", "y"))(
            lib.device_put(X, plain(lib))
        ),
        r"argument a is an array.*Layout\.AUTO.*ShapeDtypeStruct",
    ),
    "lowering an array for AUTO": (
        lambda lib: lib.jit(lambda a: a, in_shardings=lib.format(Layout.AUTO)).lower(put(lib)),
        r"argument a is an array.*Layout\.AUTO.*ShapeDtypeStruct",
    ),
    "a struct with a layout for AUTO": (
        lambda lib: with_layout_of_struct(lib, in_shardings=lib.format(Layout.AUTO)),
        r"argument a is .*a struct with a layout",
    ),
    "another layout than a compiled program": (
        lambda lib: lib.jit(lambda a: a * 2)
        .lower(lib.device_put(X, plain(lib)))
        .compile()(put(lib)),
        r"argument a: takes .* as the default, called with one in the layout \{0,1\}",
    ),
    "the default layout for a compiled program": (
        lambda lib: lib.jit(lambda a: a * 2)
        .lower(put(lib))
        .compile()(lib.device_put(X, plain(lib))),
        r"argument a: takes .* as \{0,1\}, called with one in the layout the default",
    ),
    "three dimensions, in_shardings": (
        lambda lib: lib.jit(lambda a: a, in_shardings=lib.format(Layout((0, 2, 1)), "x"))(X),
        "orders 3 dimensions",
    ),
    "three dimensions, out_shardings": (
        lambda lib: lib.jit(lambda a: a, out_shardings=lib.format(Layout((0, 2, 1)), "x"))(X),
        "orders 3 dimensions",
    ),
    "three dimensions, device_put": (
        lambda lib: lib.device_put(X, lib.format(Layout((0, 2, 1)), "x")),
        "orders 3 dimensions",
    ),
    "three dimensions, constraint": (
        lambda lib: lib.constrain(X, lib.format(Layout((0, 2, 1)), "x")),
        "orders 3 dimensions",
    ),
    "AUTO, device_put": (
        lambda lib: lib.device_put(X, lib.format(Layout.AUTO, "x")),
        "AUTO leaves it to a compiler",
    ),
    "AUTO, callback": (
        lambda lib: lib.make((4, 8), lib.format(Layout.AUTO, "x"), lambda index: X[index]),
        "make_array_from_callback has Format.*AUTO",
    ),
    "nothing, callback": (
        lambda lib: lib.make((4, 8), lib.format(None), lambda index: X[index]),
        "make_array_from_callback has Format",
    ),
    "AUTO in a struct": (
        lambda lib: lib.struct((4, 8), np.float32, sharding=lib.format(Layout.AUTO, "x")),
        "takes? a plugrt.layout.Layout",
    ),
    "another sharding": (
        lambda lib: lib.jit(lambda a: a, in_shardings=lib.format(TURNED, "x"))(put(lib)),
        "in_shardings requests",
    ),
    "an argument that is donated to AUTO": (
        lambda lib: lib.jit(
            lambda a: a + 1, donate_argnums=0, out_shardings=lib.format(Layout.AUTO)
        )(X),
        r"argument a is donated.*out_shardings leaves.*in in_shardings as well",
    ),
    "AUTO that is donated": (
        lambda lib: lib.jit(
            lambda a: a + 1, donate_argnums=0, in_shardings=lib.format(Layout.AUTO)
        )(X),
        r"argument a is donated.*in_shardings leaves.*in out_shardings as well",
    ),
    "AUTO over a mesh that is donated": (
        lambda lib: lib.jit(
            lambda a: a + 1, donate_argnums=0, in_shardings=lib.format(Layout.AUTO, "x", "y"),
            out_shardings=both(lib),
        )(X),
        r"argument a is donated.*in_shardings leaves.*in out_shardings as well",
    ),
    "lowering AUTO over a mesh that is donated": (
        lambda lib: lib.jit(
            lambda b, a: (b.T, a + 1), donate_argnums=1, in_shardings=lib.format(Layout.AUTO, "x"),
            out_shardings=(lib.format(Layout.AUTO, "x"), lib.format(None, "x").sharding),
        ).lower(X, X),
        r"argument a is donated, and result 1.*in_shardings leaves",
    ),
    "AUTO that each device has whole": (
        lambda lib: lib.jit(
            lambda a: a + 1, donate_argnums=0, in_shardings=lib.format(Layout.AUTO, None)
        ).lower(X),
        r"argument a is donated.*in_shardings leaves",
    ),
}  # fmt: skip


@behaviour(4, "what JAX refuses of layouts over a mesh is refused, and the message says why")
@pytest.mark.parametrize("case", REFUSED_AS_JAX)
def test_layouts_over_meshes_are_refused_as_in_jax(case: str) -> None:
    """Calls both libraries.

    Same as JAX: which layouts are refused, such as `Layout.AUTO` of one side of a donation.
    """
    call, message = REFUSED_AS_JAX[case]
    with pytest.raises((ValueError, TypeError)) as theirs:
        call(Theirs)
    with pytest.raises((ValueError, TypeError), match=message) as ours:
        call(Ours)
    assert issubclass(ours.type, ValueError) or not issubclass(theirs.type, ValueError)


@pytest.mark.parametrize("spec", [("x", "y"), ("x",), (None, "y"), ()])
def test_donations_that_are_as_in_jax(spec: tuple[Any, ...]) -> None:
    """Both sides have AUTO, or the result's parts are unknown, or differ in shape."""
    for lib in (Ours, Theirs):
        where = lib.format(Layout.AUTO, *spec) if spec else lib.format(Layout.AUTO)
        f = lib.jit(lambda a: a + 1, donate_argnums=0, in_shardings=where, out_shardings=where)
        np.testing.assert_array_equal(f.lower(X).compile()(X), X + 1)
    if spec:  # the result's sharding is the compiler's choice
        for lib in (Ours, Theirs):
            stated = lib.format(Layout.AUTO, *spec)
            f = lib.jit(lambda a: a + 1, donate_argnums=0, in_shardings=stated)
            np.testing.assert_array_equal(f(X), X + 1)
    for lib in (Ours, Theirs):
        given, wanted = lib.format(Layout.AUTO, "x"), lib.format(TURNED, None, "x")
        f = lib.jit(lambda a: a + 1, donate_argnums=0, in_shardings=given, out_shardings=wanted)
        np.testing.assert_array_equal(f.lower(X).compile()(X), X + 1)


def chosen(lib: Any, f: Callable[..., Any], before: Any, after: Any, *avals: Any) -> Any:
    return lib.jit(f, in_shardings=before, out_shardings=after).lower(*avals).compile()


@behaviour(4, "`Layout.AUTO` over a mesh is chosen by the compiler, and read back from the program")
@pytest.mark.parametrize("spec", [("x", "y"), ("x",), (None, "y"), ()])
@pytest.mark.parametrize("given", ["struct", "sharding", "host"])
def test_layouts_that_the_compiler_chooses_over_a_mesh(spec: tuple[Any, ...], given: str) -> None:
    def f(a: Any, b: Any) -> Any:
        return a.T, a + b

    found = []
    for lib in (Ours, Theirs):
        sharding = lib.format(None, *(spec or (None,))).sharding
        aval = lib.struct((4, 8), np.float32, sharding=sharding if given == "struct" else None)
        stated = lib.format(Layout.AUTO, *(spec or (None,)))
        where = lib.format(Layout.AUTO) if given == "struct" else stated
        after = lib.format(Layout.AUTO)
        found.append(chosen(lib, f, where, after, *([X, X] if given == "host" else [aval, aval])))
    ours, theirs = found
    (ins, keywords), outs = ours.input_formats, ours.output_formats
    assert keywords == {}
    assert all(isinstance(each.layout, Layout) for each in (*ins, *outs))
    assert all(each.sharding.num_devices == 4 for each in (*ins, *outs))
    placed = [device_put(X, each) for each in ins]
    for results in (ours(*placed), ours(X, X)):
        np.testing.assert_array_equal(results[0], X.T)
        np.testing.assert_array_equal(results[1], X + X)
        assert [r.format for r in results] == [*outs]
    assert ours.out_info[0].sharding == outs[0].sharding
    if can_choose_shardings():
        assert [describe(x)[0] for x in ins] == [describe(x)[0] for x in theirs.input_formats[0]]
        assert [describe(x)[0] for x in outs] == [describe(x)[0] for x in theirs.output_formats]


@pytest.mark.skipif(devices()[0].platform != "cpu", reason="JAX's devices are named otherwise")
def test_structs_of_jax_have_layouts_over_meshes() -> None:
    struct = jax.ShapeDtypeStruct((4, 8), np.float32, sharding=jax_format(TURNED, "x", "y"))
    compiled = jit(lambda a: a * 2).lower(struct).compile()
    assert compiled.input_formats[0][0] == device_put(X, turned("x", "y")).format
    with pytest.raises(InvalidArgument, match="a struct with a layout"):
        jit(lambda a: a * 2, in_shardings=AUTO).lower(struct)
    plain_struct = jax.ShapeDtypeStruct((4, 8), np.float32, sharding=struct.sharding)
    found = jit(lambda a: a * 2, in_shardings=AUTO).lower(plain_struct).compile()
    assert found.input_formats[0][0].sharding == named("x", "y")


def test_a_second_program_takes_what_the_first_gives() -> None:
    aval = ShapeDtypeStruct((4, 8), np.float32, named("x", "y"))
    use = jit(lambda a: a.T @ a, in_shardings=AUTO, out_shardings=AUTO).lower(aval).compile()
    (wanted,), _ = use.input_formats
    make = jit(lambda a: a * 2, out_shardings=wanted).lower(aval).compile()
    assert make.output_formats == wanted
    made = make(device_put(X, named("x", "y")))
    assert made.format == wanted
    result = use(made)
    np.testing.assert_allclose(result, (2 * X).T @ (2 * X))
    assert result.format == use.output_formats


def test_shapes_of_results_whose_layout_is_chosen() -> None:
    """Evaluates shapes.

    Differs from JAX: the layout of `eval_shape`'s results, where `out_shardings` names the default
    one | that layout | None, which is the default one.
    """
    f = jit(lambda a: (a, a + 1), out_shardings=(Format(Layout.AUTO, named("x")), turned("x", "y")))
    one, other = f.eval_shape(X)
    assert one.format == Format(None, named("x"))
    assert other.format == turned("x", "y")
    assert f.lower(X).out_info[0].format == one.format
    default = Format(Layout((0, 1)), named("x", "y"))
    assert jit(lambda a: a + 1, out_shardings=default).eval_shape(X).format == Format(
        None, named("x", "y")
    )


def test_unused_arguments_have_no_layout() -> None:
    where = Format(Layout.AUTO, named("x", "y"))
    compiled = (
        jit(lambda a, b: a * 2, in_shardings=where, out_shardings=where).lower(X, X).compile()
    )
    used, unused = compiled.input_formats[0]
    assert isinstance(used.layout, Layout)
    assert unused == Format(None, named("x", "y"))
    np.testing.assert_array_equal(
        compiled(device_put(X, used), device_put(X, turned("x", "y"))), X * 2
    )


@behaviour(4, "committed arrays keep their layout in calls of programs over a mesh")
def test_programs_take_arrays_as_they_are() -> None:
    y = device_put(X, turned("x", "y"))
    z = device_put(X, Format(Layout((0, 1)), named("x", "y")))
    f = jit(lambda a, b: (a @ b.T, a.sum(axis=0), b[1:]))
    expected = f(X, X)
    for a, b in itertools.product((y, z, X), repeat=2):
        for one, other in zip(f(a, b), expected, strict=True):
            np.testing.assert_allclose(one, other)
    lowered = f.lower(y, X).as_text()
    assert lowered.count('mhlo.layout_mode = "{0,1}"') == 1
    alike = jit(f, in_shardings=(PositionalSharding(devices()[:4]).reshape(2, 2), None))
    assert alike.lower(y, X).as_text().count('mhlo.layout_mode = "{0,1}"') == 1
    np.testing.assert_array_equal(alike(y, X)[2], X[1:])
    compiled = f.lower(y, X).compile()
    assert order(compiled.input_formats[0][0]) == (1, 0)
    np.testing.assert_array_equal(compiled(y, X)[2], X[1:])
    np.testing.assert_array_equal(xp.sum(y, axis=1), X.sum(axis=1))


def test_an_argument_over_other_devices_is_moved_to_the_layout() -> None:
    f = jit(lambda a: a * 2, in_shardings=turned("x", "y"), out_shardings=turned("x", "y"))
    text = f.lower(X).as_text()
    assert text.count('mhlo.layout_mode = "{0,1}"') == 2
    for there in (turned("x", "y", order=1), turned("x", "y")):
        check(f(device_put(X, there)), X * 2, turned("x", "y"))
    with pytest.raises(InvalidArgument, match=r"argument a has the layout Layout.*\(0, 1\)"):
        f(device_put(X, named("x", "y", order=1)))
    plain = jit(lambda a: a * 2, in_shardings=named("x", "y"))
    np.testing.assert_array_equal(plain(device_put(X, turned("x", "y", order=1))), X * 2)


def test_layouts_in_shard_map() -> None:
    y = device_put(X, turned("x", "y"))
    spec = P("x", "y")

    def f(a: Any) -> Any:
        return plugrt.lax.psum(a, "x") + a

    mapped = plugrt.shard_map(f, mesh=mesh(), in_specs=spec, out_specs=spec)
    expected = mapped(X)
    np.testing.assert_array_equal(mapped(y), expected)
    result = jit(mapped, out_shardings=turned("x", "y"))(y)
    np.testing.assert_array_equal(result, expected)
    assert order(result) == (1, 0)


def test_results_that_are_arguments_or_known() -> None:
    """Calls programs whose results are arguments or constants.

    Differs from JAX: the layout of a result that is an argument | the default one | the argument's,
    unless `out_shardings` names another; they share their memory.
    """
    y = device_put(X, turned("x", "y"))
    same, other = jit(lambda a: (a, a + 1))(y)
    check(same, X, turned("x", "y"))
    assert order(other) == (0, 1)
    back = Format(Layout((0, 1)), named("x", "y"))
    check(jit(lambda a: a, out_shardings=back)(y), X, back)
    check(jit(lambda: X, out_shardings=turned("x", "y"))(), X, turned("x", "y"))
    check(jit(lambda a: (a, y), out_shardings=turned("x", "y"))(X)[1], X, turned("x", "y"))
    np.testing.assert_array_equal(jit(lambda a: y + a)(X), X + X)


@behaviour(4, "a donated argument over a mesh may have another layout than the result")
@pytest.mark.parametrize("out", [TURNED, Layout((0, 1)), None])
@pytest.mark.parametrize("before", [TURNED, Layout((0, 1))])
def test_donation_over_a_mesh(before: Layout, out: Layout | None) -> None:
    y = device_put(X, Format(before, named("x", "y")))
    options: Any = {} if out is None else {"out_shardings": Format(out, named("x", "y"))}
    f = jit(lambda a: a + 1, donate_argnums=0, **options)
    text = f.lower(y).as_text()
    made = f(y)
    np.testing.assert_array_equal(made, X + 1)
    assert order(made) == (out or Layout((0, 1))).major_to_minor
    assert y.is_deleted()
    aliased = out is not None and before == out
    assert ("tf.aliasing_output" in text, "jax.buffer_donor" in text) == (aliased, not aliased)
    f = jit(lambda a: a, donate_argnums=0, in_shardings=Format(before, named("x", "y")))
    y = device_put(X, Format(before, named("x", "y")))
    np.testing.assert_array_equal(f(y), X)
    assert y.is_deleted()


def test_pmap_takes_arrays_in_layouts() -> None:
    along = NamedSharding(Mesh(np.array(devices()[:4]), ("x",)), P("x"))
    y = device_put(X, Format(TURNED, along))
    for f in (pmap(lambda a: a * 2), pmap(lambda a: a * 2, donate_argnums=0)):
        np.testing.assert_array_equal(f(y), X * 2)
        assert order(pmap(lambda a: a + 1)(X)) == (0, 1)
        y = device_put(X, Format(TURNED, along))
    result = pmap(lambda a: a * 2)(X)
    check(
        device_put(result, Format(TURNED, result.sharding)), X * 2, Format(TURNED, result.sharding)
    )
    compiled = pmap(lambda a: a * 2).lower(X).compile()
    assert compiled.output_formats == compiled(X).format


def test_the_origin_of_nans_in_layouts() -> None:
    y = device_put(X, turned("x", "y"))
    with plugrt.config.override(debug_nans=True), pytest.raises(FloatingPointFault, match="log"):
        jit(lambda a: xp.log(a - 5) * 2, out_shardings=turned("x", "y"))(y)


def test_a_program_with_layouts_over_a_mesh_is_saved() -> None:
    where = turned("x", "y")
    for out in ((where, None), AUTO):
        f = jit(lambda a: (a + 1, a.T), in_shardings=where, out_shardings=out)
        compiled = f.lower(X).compile()
        loaded = deserialize_and_load(*serialize(compiled))
        for argument in (X, device_put(X, where)):
            one, other = loaded(argument)
            np.testing.assert_array_equal(one, X + 1)
            np.testing.assert_array_equal(other, X.T)
            assert (one.format, other.format) == compiled.output_formats
        with pytest.raises(ArgumentMismatch, match="other layouts"):
            loaded(device_put(X, named("x", "y")))


@behaviour(4, "moves between meshes and copies keep layouts as in JAX, and never lose contents")
def test_moves_between_meshes() -> None:
    y = device_put(X, turned("x", "y"))
    assert device_put(y, turned("x", "y")) is y
    assert device_put(y, named("x", "y")) is y
    shared = device_put(y, PositionalSharding(devices()[:4]).reshape(2, 2))
    assert order(shared) == (1, 0)
    y.delete()
    np.testing.assert_array_equal(shared, X)
    for other in SHARDINGS:
        y = device_put(X, turned("x", "y"))
        moved = device_put(y, SHARDINGS[other]())
        np.testing.assert_array_equal(moved, X)
        back = device_put(moved, turned("x", "y"))
        check(back, X, turned("x", "y"))
    one = device_put(X, Format(TURNED, here()))
    there = NamedSharding(Mesh(np.array(devices()[1:2]), ("x",)), P())
    assert order(device_put(one, there)) == (1, 0)
    assert order(device_put(device_put(one, there), devices()[2])) == (1, 0)


def test_another_order_of_the_same_devices() -> None:
    """Moves an array in a layout.

    Differs from JAX: `device_put` to a Format over the devices of an array in another order |
    refused | moves the parts and lays them out.
    """
    y = device_put(X, turned("x", "y", order=1))
    check(device_put(y, turned("x", "y")), X, turned("x", "y"))
    plain = device_put(y, named("x", "y"))
    assert order(plain) == (0, 1)
    np.testing.assert_array_equal(plain, X)
    parts = {shard.device: np.asarray(shard.data) for shard in y.addressable_shards}
    for device, index in named("x", "y", order=1).devices_indices_map((4, 8)).items():
        np.testing.assert_array_equal(parts[device], X[index])


def test_copies_and_reads() -> None:
    y = device_put(X, turned("x", "y"))
    for made in (copy.copy(y), copy.deepcopy(y), device_put(y, may_alias=False)):
        check(made, X, turned("x", "y"))
    copied = copy.copy(y)
    y.delete()
    assert y.format == Format(None, named("x", "y"))
    np.testing.assert_array_equal(copied, X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(copied)), X)
    assert repr(copied) == repr(device_put(X, named("x", "y")))
    np.testing.assert_array_equal(copied[1], X[1])
    np.testing.assert_array_equal([*copied], X)
    assert plugrt.device_get(copied).tobytes() == X.tobytes()
    one = copied.addressable_shards[3].data
    np.testing.assert_array_equal(one + 1, X[2:, 4:] + 1)


def test_parts_in_several_layouts_are_no_array() -> None:
    """Makes an array of parts in two layouts.

    Differs from JAX: parts in several layouts, in `make_array_from_single_device_arrays` |
    accepted, and programs compute wrong values of them | refused.
    """
    y, z = device_put(X, turned("x", "y")), device_put(X, named("x", "y"))
    parts = [shard.data for shard in y.addressable_shards]
    parts[2] = z.addressable_shards[2].data
    with pytest.raises(ArgumentError, match=r"arrays\[2\] has .*arrays\[0\] .*one layout"):
        plugrt.make_array_from_single_device_arrays((4, 8), named("x", "y"), parts)


def test_a_constraint_says_how_a_value_within_lies() -> None:
    f = jit(lambda a: plugrt.with_sharding_constraint(a * 2, turned("x", "y")) + 1)
    text = f.lower(X).as_text()
    assert "@LayoutConstraint" in text
    assert "result_layouts = [dense<[0, 1]>" in text
    np.testing.assert_array_equal(f(X), X * 2 + 1)
    one = Format(TURNED, here())
    g = jit(lambda a: plugrt.with_sharding_constraint({"a": a, "b": 2.5}, {"a": one, "b": None}))
    assert g(X)["b"] == 2.5
    np.testing.assert_array_equal(g(X)["a"], X)
    for weak, rank in ((2.5, 0), (plugrt.lax.broadcast(2.5, (4, 4)), 2)):
        to = Format(Layout(tuple(reversed(range(rank)))), named())
        made = plugrt.with_sharding_constraint(weak, to)
        assert made.weak_type
        assert made.sharding == named()


def test_tiles_and_meshes_without_devices() -> None:
    tiled = Format(Layout((1, 0), ((2, 2),)), named("x", "y"))
    abstract = Format(TURNED, NamedSharding(AbstractMesh((2, 2), ("x", "y")), P("x")))
    calls = {
        lambda to: device_put(X, to),
        lambda to: device_put(device_put(X, named("x")), to),
        lambda to: jit(lambda a: a, in_shardings=to)(X),
        lambda to: jit(lambda a: a, out_shardings=to)(X),
        lambda to: jit(lambda a: a).lower(ShapeDtypeStruct((4, 8), np.float32, to)),
        lambda to: plugrt.with_sharding_constraint(X, to),
        lambda to: plugrt.make_array_from_callback((4, 8), to, lambda index: X[index]),
    }
    for call in calls:
        with pytest.raises(Unimplemented, match="tiles"):
            call(tiled)
        with pytest.raises((Unimplemented, InvalidArgument), match=r"mesh|AbstractMesh"):
            call(abstract)
    y = device_put(X, named("x"))
    for made in (
        jit(lambda a: a + 1, out_shardings=abstract)(y),
        plugrt.with_sharding_constraint(y + 1, abstract),
        jit(lambda a: a + 1, in_shardings=abstract, out_shardings=abstract)(
            device_put(X, turned("x"))
        ),
    ):
        check(made, X + 1, turned("x"))


def test_layouts_are_in_the_default_memory() -> None:
    """Puts arrays in other memories.

    Differs from JAX: a layout in another memory than the default one | accepted on CPUs | refused.
    """
    kinds = {m.kind for m in devices()[0].memories()} - {devices()[0].default_memory().kind}
    for kind in kinds:
        there = named("x", "y").with_memory_kind(kind)
        with pytest.raises(Unimplemented, match="default memory"):
            device_put(X, Format(TURNED, there))
        plain = device_put(device_put(X, turned("x", "y")), there)
        np.testing.assert_array_equal(plain, X)
        assert plain.sharding.memory_kind == kind
    default = named("x", "y").with_memory_kind(devices()[0].default_memory().kind)
    assert order(device_put(X, Format(TURNED, default))) == (1, 0)


def test_shapes_that_do_not_divide() -> None:
    odd = np.ones((3, 8), np.float32)
    for call in (
        lambda: device_put(odd, turned("x")),
        lambda: device_put(device_put(odd), turned("x")),
        lambda: jit(lambda a: a, in_shardings=turned("x"))(odd),
        lambda: jit(lambda a: a, out_shardings=turned("x"))(odd),
        lambda: plugrt.with_sharding_constraint(odd, turned("x")),
        lambda: plugrt.make_array_from_callback((3, 8), turned("x"), lambda index: odd[index]),
    ):
        with pytest.raises(ShapeError, match="divide"):
            call()
    with pytest.raises(ShapeError, match=r"result 1.* divide"):
        jit(lambda a: (a[0], a), out_shardings=(None, turned("x")))(odd)


def test_constraints_that_say_too_little() -> None:
    for wrong in (AUTO, Format(), Format(Layout.AUTO, named("x"))):
        with pytest.raises(InvalidArgument, match="a Format with a sharding and a layout"):
            plugrt.with_sharding_constraint(X, wrong)
    plain = Format(None, named("x"))
    assert plugrt.with_sharding_constraint(X, plain).format == device_put(X, plain).format
