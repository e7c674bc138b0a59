"""shard_map: functions that run on each device's part, with collectives over mesh axes."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import devices, lax, monitoring
from plugrt.errors import (
    ArgumentError,
    ConcretizationError,
    DeviceMismatch,
    InvalidArgument,
    ShapeError,
    StructureError,
    UnboundAxis,
    Unimplemented,
)
from plugrt.sharding import AbstractMesh, Mesh, NamedSharding
from plugrt.sharding import PartitionSpec as P
from support.behaviour import behaviour
from support.compiles import counting
from support.jax_oracle import jax

A = np.arange(64, dtype=np.float32).reshape(8, 8)
MESH = plugrt.make_mesh((2, 4), ("x", "y"))
BOTH = ("x", "y")

# A function of lax and one part of A, the specs of its argument and its result.
Case = tuple[Callable[[Any, Any, Any], Any], Any, Any]
CASES: dict[str, Case] = {
    "each its part": (lambda m, lax, v: m.sin(v) * 2, BOTH, BOTH),
    "the whole on each": (lambda m, lax, v: v + 1, (), ()),
    "psum over one": (lambda m, lax, v: lax.psum(v, "y"), BOTH, ("x",)),
    "psum over both": (lambda m, lax, v: lax.psum(v, ("y", "x")), BOTH, ()),
    "pmean": (lambda m, lax, v: lax.pmean(v, "x"), ("x",), ()),
    "pmax": (lambda m, lax, v: lax.pmax(v, BOTH), (BOTH,), ()),
    "axis_index": (lambda m, lax, v: v * 0 + 4 * lax.axis_index("x") + lax.axis_index("y"), BOTH,
                   BOTH),
    "index over both": (lambda m, lax, v: v * 0 + lax.axis_index(("y", "x")), BOTH, BOTH),
    "ppermute": (lambda m, lax, v: lax.ppermute(v, "y", [(0, 1), (1, 2), (3, 0)]), BOTH, BOTH),
    "ppermute over both": (
        lambda m, lax, v: lax.ppermute(v, BOTH, [(i, (i + 3) % 8) for i in range(8)]), (BOTH,),
        (BOTH,),
    ),
    "all_to_all": (lambda m, lax, v: lax.all_to_all(v, "y", 1, 0, tiled=True), ("y",),
                   (None, "y")),
    "psum_scatter": (lambda m, lax, v: lax.psum_scatter(v, "y", tiled=True), (None, "y"), ("y",)),
    "all_gather, added": (lambda m, lax, v: lax.psum(lax.all_gather(v, "y"), "y"), ("y",), ()),
    "in a loop": (
        lambda m, lax, v: lax.fori_loop(
            0, 3, lambda i, c: lax.ppermute(c, "x", [(0, 1), (1, 0)]) + 1, v),
        BOTH, BOTH,
    ),
    "in a scan": (
        lambda m, lax, v: lax.scan(
            lambda c, row: (c + lax.psum(row, "x"), row), m.zeros(8, dtype=np.float32), v)[0],
        ("x",), (),
    ),
    "in a branch": (
        lambda m, lax, v: lax.cond(
            m.sum(lax.psum(v, BOTH)) > 0, lambda u: lax.psum(u, "y"), lambda u: u, v),
        ("x", "y"), BOTH,
    ),
}  # fmt: skip


@behaviour(106, "each device computes with its part; collectives join those along an axis")
@pytest.mark.parametrize("name", CASES)
def test_as_jax(name: str) -> None:
    function, taken, given = CASES[name]
    mapped = plugrt.shard_map(
        lambda v: function(xp, lax, v), mesh=MESH, in_specs=P(*taken), out_specs=P(*given),
        check_vma=name not in ("in a branch",),
    )  # fmt: skip
    there = jax.sharding.Mesh(np.array(jax.devices()[:8]).reshape(2, 4), BOTH)
    spec = jax.sharding.PartitionSpec
    expected = jax.shard_map(
        lambda v: function(jax.numpy, jax.lax, v), mesh=there, in_specs=spec(*taken),
        out_specs=spec(*given), check_vma=False,
    )(A)  # fmt: skip
    for found in (mapped(A), plugrt.jit(mapped)(plugrt.device_put(A, NamedSharding(MESH, P("y"))))):
        np.testing.assert_allclose(found, np.asarray(expected), rtol=1e-5)
        assert found.sharding.devices == tuple(devices()[:8])


@behaviour(106, "over some of the axes: the compiler divides the rest")
def test_some_of_the_axes() -> None:
    @plugrt.shard_map(mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    def f(v: Any) -> Any:
        inner = plugrt.jit(lambda u: u * lax.axis_index("x") + lax.psum(u, "x"))
        return inner(v) + lax.axis_size("x")

    total = A[:4] + A[4:]
    expected = np.concatenate([total, A[4:] + total]) + 2
    np.testing.assert_array_equal(f(A), expected)
    over_y = plugrt.device_put(A, NamedSharding(MESH, P("x", "y")))
    np.testing.assert_array_equal(plugrt.jit(f)(over_y), expected)
    with pytest.raises(UnboundAxis, match="'y'"):
        plugrt.shard_map(lambda v: lax.psum(v, "y"), mesh=MESH, in_specs=P("x"), out_specs=P("x"),
                         axis_names="x")(A)  # fmt: skip
    with pytest.raises(InvalidArgument, match=r"P\('y',\); the axes .* \('x',\)"):
        plugrt.shard_map(f, mesh=MESH, in_specs=P("y"), out_specs=P("x"), axis_names=["x"])


@behaviour(106, "pytrees, prefixes of specs, what is closed over, and jitted functions inside")
def test_arguments_results_and_closures_of_shard_map() -> None:
    outside = xp.asarray(A)

    def f(p: Any, v: Any) -> Any:
        scale = plugrt.jit(lambda u: u + lax.psum(xp.sum(u), "y"))
        return {"w": scale(p["w"] + p["b"]), "v": v + outside[0] + 2.5, "n": np.float32(3)}

    mapped = plugrt.shard_map(
        f, mesh=MESH, in_specs=({"w": P(None, "y"), "b": P()}, P(BOTH)),
        out_specs={"w": P(None, "y"), "v": P(BOTH), "n": P()},
    )  # fmt: skip
    for call in (mapped, plugrt.jit(lambda p, v: mapped(p, v * 1))):
        found = call({"w": A, "b": np.float32(1)}, A)
        np.testing.assert_array_equal(found["w"], A + 1 + (A + 1).sum())
        np.testing.assert_array_equal(found["v"], A + A[0] + 2.5)
        assert found["n"] == 3
    one = plugrt.shard_map(lambda p: (p[0] + p[1], p[1]), mesh=MESH, in_specs=(P("x"),),
                           out_specs=P("x"))  # fmt: skip
    np.testing.assert_array_equal(one((A, A))[0], 2 * A)
    with plugrt.disable_jit():
        np.testing.assert_array_equal(one((A, A))[0], 2 * A)
    with plugrt.debug_nans(), pytest.raises(FloatingPointError, match=r"stablehlo\.log of"):
        plugrt.shard_map(lambda v: xp.log(v - 1), mesh=MESH, in_specs=P("x"), out_specs=P("x"))(A)
    scanned = lax.scan(lambda c, row: (c + mapped_sum(row), row), xp.zeros(()), xp.asarray(A))[0]
    assert scanned == A.sum()


def mapped_sum(v: Any) -> Any:
    total = plugrt.shard_map(
        lambda u: lax.psum(xp.sum(u), "y"), mesh=MESH, in_specs=P("y"), out_specs=P()
    )
    return total(v)


VARIES: dict[str, tuple[Callable[[Any], Any], Any, str]] = {
    "what is divided": (lambda v: v, ("x",), "x"),
    "summed over another": (lambda v: lax.psum(v, "y"), ("x", "y"), "x"),
    "summed in groups": (
        lambda v: lax.psum(v, "y", axis_index_groups=[[0, 1], [2, 3]]), (None, "y"), "y",
    ),
    "summed in groups of several lengths": (
        lambda v: lax.psum(v, BOTH, axis_index_groups=[[0, 1, 2, 3], [4], [5], [6], [7]]),
        (None, "y"), "x",
    ),
    "counted in groups of several lengths": (
        lambda v: v + lax.psum(np.float32(1), "y", axis_index_groups=[[0, 1, 2], [3]]), (), "y",
    ),
    "summed across": (
        lambda v: lax.psum(v, BOTH, axis_index_groups=[[0, 5], [1, 2], [3, 4], [6, 7]]),
        ("x",), "x",
    ),
    "a part of what is the same": (
        lambda v: lax.psum_scatter(v, "y", axis_index_groups=[[0, 1], [2, 3]], tiled=True), (), "y",
    ),
    "moved": (lambda v: lax.ppermute(lax.psum(v, "x"), "y", [(0, 1)]), ("x",), "y"),
    "its index": (lambda v: v + lax.axis_index("y"), (), "y"),
    "by way of a loop": (
        lambda v: lax.fori_loop(
            0, 2, lambda i, c: (c[1], c[1] + lax.axis_index("x")),
            lax.pcast((v, v), "x", to="varying"))[0],
        (), "x",
    ),
    "by way of a condition": (
        lambda v: lax.cond(lax.axis_index("y") > 1, lambda u: u, lambda u: -u, v), (), "y",
    ),
    "by way of a function": (lambda v: plugrt.jit(lambda u: u * lax.axis_index("y"))(v), (), "y"),
    "by way of how often": (
        lambda v: lax.while_loop(lambda c: c[0, 0] < lax.axis_index("x"), lambda c: c + 1, v), (),
        "x",
    ),
}  # fmt: skip


@behaviour(106, "a result that differs along an axis that its spec leaves out is refused")
@pytest.mark.parametrize("name", VARIES)
def test_the_replication_check(name: str) -> None:
    function, taken, axis = VARIES[name]
    mapped = plugrt.shard_map(function, mesh=MESH, in_specs=P(*taken), out_specs=P())
    with pytest.raises(ArgumentError, match=f"differs along the axis '{axis}'.*check_vma=False"):
        mapped(A)
    unchecked = plugrt.shard_map(
        function, mesh=MESH, in_specs=P(*taken), out_specs=P(), check_vma=False
    )
    assert unchecked(A).dtype == np.float32
    summed = plugrt.shard_map(
        lambda v: lax.pmax(function(v), BOTH), mesh=MESH, in_specs=P(*taken), out_specs=P()
    )
    assert summed(A).dtype == np.float32


X = P("x")


def _map(in_specs: Any = X, out_specs: Any = X, f: Any = lambda v: v, **more: Any) -> Any:
    return plugrt.shard_map(f, **{"mesh": MESH, **more}, in_specs=in_specs, out_specs=out_specs)


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a mesh that is none": (
        lambda: plugrt.shard_map(len, mesh=3, in_specs=P(), out_specs=P()),  # type: ignore[call-overload]
        TypeError, "takes a Mesh; got 3",
    ),
    "no function": (lambda: _map(f=3), TypeError, "shard_map"),
    "a string for a spec": (lambda: _map("x"), TypeError, "PartitionSpecs; got str 'x'"),
    "None for a spec": (lambda: _map(X, None)(A), TypeError, r"P\(\) is what each device has"),
    "an axis that is not there": (lambda: _map(P("z")), InvalidArgument, r"in_specs has .*'z'"),
    "axis_names": (lambda: _map(axis_names=["w"]), InvalidArgument, "'w'; the mesh is Mesh"),
    "an open spec": (lambda: _map(P(P.UNCONSTRAINED)), InvalidArgument, "takes no UNCONSTRAINED"),
    "a flag": (lambda: _map(check_vma="no"), TypeError, "check_vma"),
    "too many specs": (lambda: _map((X, X))(A), StructureError, "not a pytree prefix of the"),
    "specs of results": (lambda: _map(X, (X, X))(A), StructureError, "prefix of the results of"),
    "a shape": (lambda: _map()(A[:3]), ShapeError, "argument 0 of shard_map.*3 cannot be divided"),
    "too few dimensions": (lambda: _map()(1.0), ShapeError, "names 1 dimensions, and the"),
    "a result of too few": (
        lambda: _map(f=xp.sum)(A), ShapeError, r"result 0 .*has 0 dimensions on each.*names 1",
    ),
    "a result that is none": (lambda: _map(f=lambda v: "x")(A), TypeError, "a result of shard_map"),
    "within another over its axes": (
        lambda: _map(f=_map(axis_names={"x"}), axis_names={"x"})(A), InvalidArgument,
        r"over \['x'\], within shard_map over \['x'\], which has 'x' already: .*names=\{'y'\}",
    ),
    "within another over all": (
        lambda: _map(f=_map())(A), InvalidArgument, "which has 'x' already: no axis is left",
    ),
    "within another of another mesh": (
        lambda: _map(axis_names={"x"}, f=plugrt.shard_map(
            lambda v: v, mesh=plugrt.make_mesh((8,), ("z",)), in_specs=P("z"), out_specs=P()))(A),
        InvalidArgument, r"called at .*over Mesh\('z': 8\), within .* of Mesh\('x': 2, 'y': 4\)",
    ),
    "within pmap": (
        lambda: plugrt.pmap(lambda v: _map()(v), "i")(A[:2, None]), NotImplementedError,
        r"shard_map of .*, called at .* within pmap of '<lambda>' over \['i'\]",
    ),
    "a constraint over its axes": (
        lambda: _map(f=lambda v: plugrt.with_sharding_constraint(v, NamedSharding(MESH, X)))(A),
        InvalidArgument, r"within shard_map over \['x', 'y'\]: a value there is one device",
    ),
    "a constraint over its axes, of some": (
        lambda: _map(
            f=lambda v: plugrt.device_put(v, NamedSharding(MESH, X)), axis_names={"x"}
        )(A),
        InvalidArgument, r"device_put with .*one device's part along 'x'; name \['y'\] of it",
    ),
    "a constraint over another mesh": (
        lambda: _map(f=lambda v: plugrt.with_sharding_constraint(
            v, NamedSharding(plugrt.make_mesh((8,), ("z",)), P(None, "z"))))(A),
        InvalidArgument, r"of Mesh\('x': 2, 'y': 4\): it is not over that mesh; leave it out",
    ),
    "an abstract mesh of another size": (
        lambda: plugrt.shard_map(
            lambda v: v, mesh=AbstractMesh((4,), ("x",)), in_specs=X, out_specs=X
        )(plugrt.device_put(A, NamedSharding(MESH, X))),
        DeviceMismatch, r"shard_map of '<lambda>', called at .* on any 4 devices",
    ),
    "on other devices": (
        lambda: _map()(plugrt.device_put(A, devices()[3])), DeviceMismatch,
        r"shard_map of '<lambda>', called at .*test_shard_map.py:\d+ on the devices \[0, 1, 2",
    ),
}  # fmt: skip


@behaviour(106, "over the shape of a mesh: on the devices of the arguments, in their order",
           jax="the same; refuses arguments without a mesh")  # fmt: skip
def test_over_the_shape_of_a_mesh() -> None:
    """It divides arrays that are divided otherwise.

    Differs from JAX: arguments of a `shard_map` over an `AbstractMesh` that have no NamedSharding,
    or one over a mesh of another shape | refused | divided over their devices, or the first ones.
    """

    def place(v: Any) -> Any:
        within = plugrt.shard_map(
            lambda w: w * 2, in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"}
        )
        return within(v) + lax.axis_index("x")

    f = plugrt.shard_map(place, mesh=MESH.abstract_mesh, in_specs=X, out_specs=X, axis_names={"x"})
    expected = A * 2 + np.arange(len(A))[:, None] // (len(A) // 2)
    turned = Mesh(MESH.devices[::-1], MESH.axis_names)
    for mesh in (MESH, turned):
        result = f(plugrt.device_put(A, NamedSharding(mesh, X)))
        np.testing.assert_array_equal(result, expected)
        assert result.sharding.devices == mesh.flat_devices
    np.testing.assert_array_equal(f(A), expected)


@behaviour(106, "without the check, the first device's part is read where they differ")
def test_the_first_part_is_read() -> None:
    x = _map(P("x", "y"), X, check_vma=False)(A)
    np.testing.assert_array_equal(x, A[:, : A.shape[1] // 4])
    np.testing.assert_array_equal(plugrt.device_put(x, devices()[0]), A[:, : A.shape[1] // 4])


@behaviour(106, "wrong specs, shapes, meshes and surroundings are refused, each by its name")
@pytest.mark.parametrize("name", WRONG)
def test_wrong_uses(name: str) -> None:
    call, error, said = WRONG[name]
    with pytest.raises(error, match=said):
        call()


@behaviour(106, "sums in groups that repeat along an axis are the same along that one")
def test_groups_that_repeat() -> None:
    mapped = plugrt.shard_map(
        lambda v: lax.psum(v, "y", axis_index_groups=[[0, 1], [2, 3]]), mesh=MESH,
        in_specs=P(None, "y"), out_specs=P(None, "y"),
    )  # fmt: skip
    pairs = A.reshape(8, 2, 2, 2).sum(2, keepdims=True)
    np.testing.assert_array_equal(mapped(A), np.broadcast_to(pairs, (8, 2, 2, 2)).reshape(8, 8))


@behaviour(106, "a function reads the variables of its closure at the call, outside of jit")
def test_closures_at_each_call() -> None:
    by = [1]

    def scale(v: Any) -> Any:
        return v * by[0]

    mapped = plugrt.shard_map(scale, mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("x",))
    in_jax = jax.shard_map(scale, mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x"))
    with counting() as counts:
        for by[0] in (2, 3, 2, 3):
            np.testing.assert_array_equal(mapped(A), in_jax(A))
            np.testing.assert_array_equal(mapped(A), A * by[0])
    assert counts[monitoring.COMPILE] == 2


@pytest.mark.parametrize("dtype", ["int32", "complex64"])
@pytest.mark.parametrize("spec", [("y",), (None, "x"), (), (("x", "y"),), ("y", "x")])
def test_results_are_divided_as_out_specs_say(spec: Any, dtype: str) -> None:
    """With ``check_vma=False`` the specs may drop parts of the result."""
    mesh = plugrt.make_mesh((4, 2), ("x", "y"))
    x = plugrt.device_put(A.astype("int32"), NamedSharding(MESH, P("x", "y")))
    f = plugrt.shard_map(
        lambda v: (v + np.ones((), dtype), v), mesh=mesh, in_specs=P("y", "x"), out_specs=P(*spec),
        check_vma=False,
    )  # fmt: skip
    for result in f(x):
        expected = NamedSharding(mesh, P(*spec))
        assert result.sharding.is_equivalent_to(expected, 2), result.sharding


def test_an_argument_that_is_not_used_does_not_decide_where_a_jitted_one_runs() -> None:
    four = plugrt.make_mesh((4,), ("x",))
    f = plugrt.shard_map(lambda v, w: w * 2, mesh=four, in_specs=(P("x"), P("x")), out_specs=P("x"))
    elsewhere = plugrt.device_put(A, devices()[7])
    assert np.array_equal(plugrt.jit(f)(elsewhere, A), A * 2)
    none = plugrt.shard_map(lambda v: xp.zeros(2), mesh=four, in_specs=P("x"), out_specs=P())
    assert np.array_equal(plugrt.jit(none)(elsewhere), [0, 0])
    with pytest.raises(DeviceMismatch, match="argument v"):
        f(elsewhere, A)


def _call_back(v: Any) -> Any:
    def double(part: Any) -> Any:
        return np.asarray(part) * 2

    return plugrt.pure_callback(double, plugrt.ShapeDtypeStruct(v.shape, v.dtype), v)


@pytest.mark.parametrize("number", [0, 3])
@pytest.mark.parametrize("mesh", [(1,), (1, 1)])
@pytest.mark.parametrize(
    ("function", "factor"),
    [
        (lambda v: v, 1),
        (lambda v: lax.psum(v, "x") + lax.axis_index("x"), 1),
        (_call_back, 2),
        (lambda v: lax.cond(v[0, 0] < 0, lambda v: v, _call_back, v), 2),
    ],
    ids=["passed", "collective", "callback", "callback in a branch"],
)
def test_over_one_device_it_is_a_plain_part_of_the_program(
    function: Any, factor: int, mesh: tuple[int, ...], number: int
) -> None:
    """Same as JAX: a mesh of one device, also for Python functions that the program calls."""
    [device] = devices()[number : number + 1]
    over = Mesh(np.array([device]).reshape(mesh), ("x", "y")[: len(mesh)])
    mapped = plugrt.shard_map(function, mesh=over, in_specs=P("x"), out_specs=P("x"))
    for call in (mapped, plugrt.jit(mapped), plugrt.jit(lambda v: mapped(v) * 1)):
        result = call(A)
        np.testing.assert_array_equal(result, A * factor)
        assert (result.committed, result.devices()) == (True, {device})
    unused = plugrt.jit(lambda v: (mapped(v), v + 1)[1])(A)
    assert not unused.committed


class Unhashable:
    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("other", [Unhashable(), None, {"a": object()}, (4, 2), "text"])
@pytest.mark.parametrize("wrap", [lambda f: f, plugrt.jit])
def test_arguments_without_a_spec_are_passed_unchanged(other: Any, wrap: Any) -> None:
    """Same as JAX: None in the ``in_specs`` of `shard_map`."""
    mesh = plugrt.make_mesh((4,), ("i",))
    x = np.arange(8, dtype=np.float32)
    given: list[Any] = []

    def f(first: Any, v: Any, last: Any) -> Any:
        given.append((first, v.shape, last))
        return v * 2

    specs = (None, P("i"), None)
    mapped = plugrt.shard_map(f, mesh=mesh, in_specs=specs, out_specs=P("i"))
    result = wrap(lambda v: mapped(other, v, [other]))(x)
    assert result.tolist() == (x * 2).tolist()
    assert result.sharding == NamedSharding(mesh, P("i"))
    [(first, shape, last)] = given
    leaves = plugrt.tree.leaves((first, last)), plugrt.tree.leaves((other, [other]))
    assert all(ours is theirs for ours, theirs in zip(*leaves, strict=True))
    assert (first is None, shape) == (other is None, (2,))
    assert plugrt.shard_map(lambda v: v, mesh=mesh, in_specs=None, out_specs=P())(3.0) == 3
    with pytest.raises(ShapeError, match="size 7 cannot be divided by 4"):
        mapped(other, x[1:], other)


def test_none_stands_for_no_result() -> None:
    """Same as JAX: None in the ``out_specs`` of `shard_map`."""
    mesh, x = plugrt.make_mesh((4,), ("i",)), np.arange(8, dtype=np.float32)
    nothing = plugrt.shard_map(lambda v: None, mesh=mesh, in_specs=P("i"), out_specs=None)
    assert nothing(x) is None
    both = plugrt.shard_map(
        lambda v: (None, v), mesh=mesh, in_specs=P("i"), out_specs=(None, P("i"))
    )
    assert both(x)[0] is None
    assert both(x)[1].tolist() == x.tolist()


CARRIED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "scan": lambda lib, v, zero: lib.scan(lambda c, y: (c + y, c), zero, v)[0],
    "while_loop": lambda lib, v, zero: lib.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + v[0]), (np.int32(0), zero)
    )[1],
    "fori_loop": lambda lib, v, zero: lib.fori_loop(0, 3, lambda _, c: c + v[0], zero),
    "cond": lambda lib, v, zero: lib.cond(True, lambda: v[0], lambda: zero),
}


@pytest.mark.parametrize("name", CARRIED)
def test_a_carry_has_one_type(name: str) -> None:
    """As in JAX: the initial carry needs `lax.pcast` if the body's result varies."""
    f, mesh, x = CARRIED[name], plugrt.make_mesh((2,), ("x",)), np.arange(4, dtype=np.float32)

    def mapped(lib: Any, module: Any, mesh: Any, spec: Any, casts: bool, out: Any) -> Any:
        def one(v: Any) -> Any:
            zero = np.float32(0)
            return lib.reshape(
                f(lib, v, lib.pcast(zero, "x", to="varying") if casts else zero), (1,)
            )

        return module.shard_map(one, mesh=mesh, in_specs=spec("x"), out_specs=out)

    values = {"scan": [1, 5], "while_loop": [0, 6], "fori_loop": [0, 6], "cond": [0, 2]}[name]
    theirs = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    for given in ((lax, plugrt, mesh, P), (jax.lax, jax, theirs, jax.P)):
        assert np.asarray(mapped(*given, True, given[-1]("x"))(x)).tolist() == values
        with pytest.raises(TypeError, match=r"type"):
            mapped(*given, False, given[-1]("x"))(x)
        with pytest.raises(ValueError, match=r"differs along the axis 'x'|replicated across"):
            mapped(*given, True, given[-1]())(x)


STATES: dict[str, tuple[Callable[[Any, Any], Any], set[str]]] = {
    "an argument": (lambda m, v: v, {"x"}),
    "an operation": (lambda m, v: v * 2 + 1, {"x"}),
    "a constant": (lambda m, v: m.lax.full((2,), 1.0), set()),
    "like": (lambda m, v: m.xp.ones_like(v), {"x"}),
    "cast": (lambda m, v: v + m.lax.pcast(1.0, "y", to="varying"), {"x", "y"}),
    "an index": (lambda m, v: m.lax.axis_index(("x", "y")), {"x", "y"}),
    "psum": (lambda m, v: m.lax.psum(v, "x"), set()),
    "pmax": (lambda m, v: m.lax.pmax(v, "x"), set()),
    "all_gather": (lambda m, v: m.lax.all_gather(v, "x"), {"x"}),
    "all_gather to the same": (lambda m, v: m.lax.all_gather(v, "x", to="invarying"), set()),
    "ppermute": (lambda m, v: m.lax.ppermute(v, "y", [(0, 1)]), {"x", "y"}),
    "all_to_all": (lambda m, v: m.lax.all_to_all(m.lax.psum(v, "x"), "x", 0, 0, tiled=True), {"x"}),
    "psum_scatter": (lambda m, v: m.lax.psum_scatter(v, "x", tiled=True), {"x"}),
    "a function within": (lambda m, v: m.jit(lambda u: u * m.lax.axis_index("y"))(v), {"x", "y"}),
    "a loop": (lambda m, v: m.lax.fori_loop(0, 3, lambda _, c: c * 2, v), {"x"}),
    "outputs of a scan": (
        lambda m, v: m.lax.scan(lambda c, _: (c, c + v), m.lax.psum(v, "x"), None, length=3)[1],
        {"x"},
    ),
    "a branch": (lambda m, v: m.lax.cond(True, lambda: v, lambda: -v), {"x"}),
    "a mean": (lambda m, v: m.lax.pmean(v, "x"), set()),
    "sorted": (lambda m, v: m.xp.sort(v), {"x"}),
    "sampled": (lambda m, v: m.random.poisson(m.random.key(0), v), {"x"}),
}


def test_types_say_along_which_axes_a_value_differs() -> None:
    """As in JAX: `typeof(x).mat` within `shard_map`."""
    theirs = jax.make_mesh((2, 4), BOTH, axis_types=(jax.sharding.AxisType.Auto,) * 2)
    ours = SimpleNamespace(
        lax=lax, xp=xp, jit=plugrt.jit, random=plugrt.random, typeof=plugrt.typeof,
        shard_map=plugrt.shard_map, mesh=MESH, P=P,
    )  # fmt: skip
    others = SimpleNamespace(
        lax=jax.lax, xp=jax.numpy, jit=jax.jit, random=jax.random, typeof=jax.typeof,
        shard_map=jax.shard_map, mesh=theirs, P=jax.P,
    )  # fmt: skip
    found: dict[str, Any] = {}
    for m, checked in ((ours, True), (others, True), (ours, False)):

        def keep(v: Any, m: Any = m) -> Any:
            found.update((name, m.typeof(f(m, v)).mat) for name, (f, _) in STATES.items())
            return v

        spec, x = m.P("x"), np.arange(8, dtype=np.float32)
        m.jit(m.shard_map(keep, mesh=m.mesh, in_specs=spec, out_specs=spec, check_vma=checked))(x)
        for name, (_, expected) in STATES.items():
            mat = found.pop(name)
            if checked:
                assert mat.varying == expected, name
                assert mat.unreduced == mat.reduced == set()
            else:
                assert mat == plugrt.sharding.ManualAxisType(), name


def test_psum_over_more_axes_than_a_value_differs_along() -> None:
    """It is counted once for each device.

    Differs from JAX: `psum` and `psum_scatter`, in `shard_map` with `check_vma=True`, over an axis
    along which a value differs, and one along which it does not | refused | accepted, as `pmax` is.

    Differs from JAX: `axis_index_groups` of `psum` in `shard_map` with `check_vma=True` | refused |
    accepted: the result differs along the axis.
    """

    def call(lib: Any, module: Any, mesh: Any, spec: Any, **groups: Any) -> Any:
        f = lambda v: lib.psum(v, "x" if groups else BOTH, **groups)  # noqa: E731
        out = spec("x") if groups else spec()
        return module.shard_map(f, mesh=mesh, in_specs=spec("x"), out_specs=out)(A[:2])

    np.testing.assert_array_equal(call(lax, plugrt, MESH, P), 4 * A[:2].sum(0, keepdims=True))
    groups = {"axis_index_groups": [[0], [1]]}
    np.testing.assert_array_equal(call(lax, plugrt, MESH, P, **groups), A[:2])
    theirs = jax.make_mesh((2, 4), BOTH, axis_types=(jax.sharding.AxisType.Auto,) * 2)
    with pytest.raises(ValueError, match="can only accept axis_name"):
        call(jax.lax, jax, theirs, jax.P)
    with pytest.raises(NotImplementedError):
        call(jax.lax, jax, theirs, jax.P, **groups)


def test_explicit_axes_around_a_shard_map_within() -> None:
    types = (plugrt.sharding.AxisType.Explicit,) * 2
    with plugrt.set_mesh(plugrt.make_mesh((2, 4), BOTH, types)):
        x = plugrt.device_put(A, P("x", "y"))
        inner = plugrt.shard_map(
            lambda w: w + lax.axis_index("y"),
            in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"},
        )  # fmt: skip

        def outer(v: Any) -> Any:
            made = inner(v)
            assert made.aval.mat.varying == {"x"}
            assert made.aval.sharding.spec == P(None, "y")
            return made

        mapped = plugrt.shard_map(outer, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
        np.testing.assert_array_equal(plugrt.jit(mapped)(x), A + np.arange(8) // 2)
        nothing = plugrt.shard_map(lambda v: None, in_specs=P(), out_specs=None)
        assert nothing(np.zeros(3)) is None
        terms: Any = {"in_specs": P(unreduced={"x"}), "out_specs": P(), "axis_names": {"x"}}
        with pytest.raises(NotImplementedError, match="map over all axes"):
            plugrt.shard_map(lambda v: v, **terms)(x)
    divides = lambda v: lax.with_sharding_constraint(v * v, P(None, "y"))  # noqa: E731
    squares = _map(axis_names={"x"}, f=divides)
    np.testing.assert_array_equal(squares(A), A * A)


def test_in_specs_divide_an_argument_of_another_type() -> None:
    """Each device has the part that its spec says.

    Differs from JAX: `in_specs` of `shard_map`, over Explicit axes, that are not the spec in the
    type of the argument | refused | accepted: the argument is divided as they say.
    """
    types = (plugrt.sharding.AxisType.Explicit,)
    with plugrt.set_mesh(plugrt.make_mesh((2,), ("x",), types)):
        rows = plugrt.device_put(A, P("x"))
        columns = plugrt.shard_map(
            lambda v: v * lax.axis_index("x"), in_specs=P(None, "x"), out_specs=P(None, "x")
        )(rows)
    np.testing.assert_array_equal(columns, A * (np.arange(8) >= 4))
    theirs = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
    with jax.set_mesh(theirs), pytest.raises(ValueError, match="does not match the specs"):
        jax.shard_map(lambda v: v, in_specs=jax.P(None, "x"), out_specs=jax.P(None, "x"))(
            jax.device_put(A, jax.P("x"))
        )


def test_jitted_functions_have_types_of_the_surroundings_they_are_called_in() -> None:
    index = plugrt.jit(lambda: lax.axis_index("x"))

    def call(v: Any) -> Any:
        found.append((index().aval.mat.varying, plugrt.jit(lambda u: u + v)(1.0).aval.mat.varying))
        return v

    for check, expected in ((False, set()), (True, {"x"}), (False, set()), (True, {"x"})):
        found: list[Any] = []
        _map(f=call, check_vma=check)(A)
        assert found[-1] == (expected, expected)


WRONG_TYPES: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "cast again": (lambda v: lax.pcast(v, "x", to="varying"), ArgumentError, "that is varying"),
    "cast to reduced": (lambda v: lax.pcast(v, "x", to="reduced"), ArgumentError, "is varying"),
    "cast over both": (lambda v: lax.pcast(v, BOTH, to="varying"), ArgumentError, "in one state"),
    "cast to what is not there": (lambda v: lax.pcast(v, "x", to="z"), ArgumentError, "got 'z'"),
    "another axis": (lambda v: lax.pcast(v, "z", to="varying"), UnboundAxis, "'z'"),
    "gathered to what is not there": (
        lambda v: lax.all_gather(v, "x", to="unreduced"), ArgumentError, "got 'unreduced'",
    ),
    "groups gathered to the same": (
        lambda v: lax.all_gather(v, "x", to="invarying", axis_index_groups=[[0, 1]]),
        Unimplemented, "axis_index_groups",
    ),
    "terms and others": (
        lambda v: v + lax.pcast(v, "x", to="unreduced"), TypeError, "where another is unreduced",
    ),
    "the largest term": (
        lambda v: lax.pmax(lax.pcast(v, "x", to="unreduced"), "x"), ArgumentError, "unreduced over",
    ),
    "a product of terms": (
        lambda v: lax.pcast(v, "x", to="unreduced") * lax.pcast(v, "x", to="unreduced"),
        TypeError, "product of sums",
    ),
    "terms in groups": (
        lambda v: lax.psum(lax.pcast(v, "x", to="unreduced"), "x", axis_index_groups=[[0, 1]]),
        Unimplemented, "axis_index_groups",
    ),
    "reduced, to be summed": (
        lambda v: lax.psum(lax.pcast(1.0, "x", to="reduced"), "x"), ArgumentError, "reduced over",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_TYPES)
def test_types_that_do_not_fit_are_refused_where_they_are_used(name: str) -> None:
    f, error, said = WRONG_TYPES[name]
    mesh = plugrt.make_mesh((2, 1), BOTH)
    with pytest.raises(error, match=said):
        _map(f=f, mesh=mesh)(A)


def test_smap_is_over_one_axis_of_the_mesh_in_the_context() -> None:
    def halves(v: Any, w: Any) -> Any:
        return v + lax.axis_index("x"), lax.psum(v, "x") + w

    with plugrt.set_mesh(MESH):
        mapped = plugrt.smap(in_axes=(1, None), out_axes=(1, None), axis_name="x")(halves)
        first, second = plugrt.jit(mapped)(A, 1.0)
        inner = plugrt.smap(lambda v: v * lax.axis_index("y"), in_axes=0, out_axes=0, axis_name="y")
        both = plugrt.smap(inner, in_axes=0, out_axes=0, axis_name="x")(A)
    np.testing.assert_array_equal(first, A + (np.arange(8) >= 4))
    np.testing.assert_array_equal(second, A[:, :4] + A[:, 4:] + 1)
    assert both.sharding.spec[0] == ("x", "y")
    np.testing.assert_array_equal(both, A * (np.arange(8) % 4)[:, None])
    types = (plugrt.sharding.AxisType.Explicit,)
    with plugrt.set_mesh(plugrt.make_mesh((2,), ("x",), types)):
        typed = plugrt.device_put(A, P(None, "x"))
        inferred = plugrt.smap(lambda v: v[:1], out_axes=1, axis_name="x")(typed)
    np.testing.assert_array_equal(inferred, A[:1])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "smap without in_axes"),
        ({"in_axes": -1}, "from 0 on"),
        ({"in_axes": [0]}, "in_axes of smap is a dimension"),
        ({"in_axes": 0, "out_axes": True}, "out_axes of smap are dimensions"),
        ({"in_axes": 0, "axis_name": ("x",)}, "over one axis"),
    ],
)
def test_smap_refuses_wrong_options(options: dict[str, Any], said: str) -> None:
    with plugrt.set_mesh(MESH), pytest.raises(TypeError, match=said):
        plugrt.smap(lambda v: v, **{"out_axes": 0, "axis_name": "x", **options})(A)


def test_a_function_is_traced_outside_of_jit_too() -> None:
    """A call by itself is compiled as one in `jit`.

    Differs from JAX: `shard_map` outside of `jit` of a function that branches on values of its
    arrays, or prints them | runs by the operation, so that it can | traces the function, as in
    `jit`: `lax.cond` and `debug.print` do it.

    Differs from JAX: `device_put` to a device in a `shard_map` outside of `jit` | refused |
    ignored, as in `jit`.
    """

    def branches(lib: Any, v: Any) -> Any:
        return v if lib.psum(v, "x").sum() > 0 else -v

    def call(lib: Any, module: Any, mesh: Any, spec: Any, x: Any = A, f: Any = branches) -> Any:
        g = module.shard_map(lambda v: f(lib, v), mesh=mesh, in_specs=spec, out_specs=spec)
        return g(x)

    theirs = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    np.testing.assert_array_equal(call(jax.lax, jax, theirs, jax.P("x")), A)
    with pytest.raises(ConcretizationError, match=r"lax\.cond"):
        call(lax, plugrt, MESH, P("x"))
    put = lambda module: lambda _, v: v + module.device_put(1, module.devices()[0])  # noqa: E731
    np.testing.assert_array_equal(call(lax, plugrt, MESH, P("x"), f=put(plugrt)), A + 1)
    with pytest.raises(ValueError, match="got device"):
        call(jax.lax, jax, theirs, jax.P("x"), f=put(jax))


def test_a_result_varies_with_the_condition() -> None:
    """The result differs along an axis if the condition does, since it depends on the choice.

    Differs from JAX: the result of a `cond` in `shard_map` whose condition differs along an axis,
    and whose branches do not | is taken to be the same along it | differs along it.

    Differs from JAX: a `Mesh` given to a `shard_map` within another | refused: the axes around are
    Manual | accepted, where it is the same one; it is over the axes that are left.
    """

    def call(lib: Any, module: Any, mesh: Any, spec: Any, out: Any) -> Any:
        def f(v: Any, w: Any) -> Any:
            return lib.cond(w.sum() > 3, lambda: v, lambda: v + 1)

        ins = (spec("x"), spec("y"))
        return module.shard_map(f, mesh=mesh, in_specs=ins, out_specs=out)(A[:, 0], A[0, :4])

    auto = (jax.sharding.AxisType.Auto,) * 2
    call(jax.lax, jax, jax.make_mesh((2, 4), BOTH, axis_types=auto), jax.P, jax.P("x"))
    with pytest.raises(ArgumentError, match="differs along the axis 'y'"):
        call(lax, plugrt, MESH, P, P("x"))

    def nested(module: Any, mesh: Any, spec: Any) -> Any:
        y = spec(None, "y")

        def inner(v: Any) -> Any:
            return module.shard_map(lambda w: w * 2, mesh=mesh, in_specs=y, out_specs=y)(v)

        x = {"mesh": mesh, "in_specs": spec("x"), "out_specs": spec("x"), "axis_names": {"x"}}
        return module.jit(module.shard_map(inner, **x, check_vma=False))(A)

    np.testing.assert_array_equal(nested(plugrt, MESH, P), A * 2)
    with pytest.raises(ValueError, match="context mesh"):
        nested(jax, jax.make_mesh((2, 4), BOTH, axis_types=auto), jax.P)


def test_prints_over_some_of_the_axes_and_closures_over_explicit_ones() -> None:
    """Both are decided when the function is traced.

    Differs from JAX: `debug.print` in a `shard_map` over some of a mesh's axes | prints |
    `Unimplemented`: print over all of them, or outside.

    Differs from JAX: a function that closes over an array made under a mesh of Explicit axes,
    in a `shard_map` over them | refused | accepted, where the array is whole on each device.
    """

    def prints(v: Any) -> Any:
        plugrt.debug.print("{}", v)
        return v

    with pytest.raises(NotImplementedError, match=r"debug\.print"):
        plugrt.jit(_map(axis_names={"x"}, f=prints))(A)

    def closes(lib: Any, module: Any, mesh: Any, spec: Any) -> Any:
        w, rows = lib.ones(8), spec("x")
        x = module.device_put(A, module.sharding.NamedSharding(mesh, rows))
        return module.shard_map(lambda v: v * w, mesh=mesh, in_specs=rows, out_specs=rows)(x)

    ours = plugrt.make_mesh((2,), ("x",), (plugrt.sharding.AxisType.Explicit,))
    with plugrt.set_mesh(ours):
        np.testing.assert_array_equal(closes(xp, plugrt, ours, P), A)
    theirs = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
    with jax.set_mesh(theirs), pytest.raises(NotImplementedError, match="Closing over"):
        closes(jax.numpy, jax, theirs, jax.P)


def test_open_sums_go_in_and_out() -> None:
    mesh = plugrt.make_mesh((2,), ("x",), (plugrt.sharding.AxisType.Explicit,))
    with plugrt.set_mesh(mesh):
        rows = plugrt.device_put(A, P("x"))
        try:
            terms = lax.reduce_sum(rows, [0], out_sharding=P(unreduced={"x"}))
        except Unimplemented:
            pytest.skip("the library makes no terms of a value")

        def add(v: Any) -> Any:
            assert v.aval.mat.unreduced == {"x"}
            return lax.psum(v, "x")

        for more in ({}, {"in_specs": P(unreduced={"x"})}):
            added = plugrt.shard_map(add, out_specs=P(), **more)(terms)
            np.testing.assert_array_equal(added, A.sum(0))
        with pytest.raises(InvalidArgument, match="both name the same axes as unreduced"):
            plugrt.shard_map(lambda v: v, in_specs=P(), out_specs=P())(terms)
        with pytest.raises(ArgumentError, match=r"unreduced over \['x'\].* says over \[\]"):
            plugrt.shard_map(lambda v: v, out_specs=P())(terms)
        with pytest.raises(NotImplementedError, match=r"sine of .*U:x"):
            plugrt.shard_map(lambda v: xp.sin(v), out_specs=P())(terms)

        def make(v: Any) -> Any:
            return lax.pcast(xp.sum(v, axis=0), "x", to="unreduced")

        for f in (make, lambda v: xp.sum(v, axis=0)):  # out_specs cast what varies
            made = plugrt.shard_map(f, in_specs=P("x"), out_specs=P(unreduced={"x"}))(rows)
            assert made.sharding.spec.unreduced == {"x"}
            np.testing.assert_array_equal(plugrt.sharding.reshard(made, P()), A.sum(0))
        part = plugrt.shard_map(
            lambda v: lax.psum_scatter(v, "x", tiled=True),
            in_specs=P(unreduced={"x"}), out_specs=P("x"),
        )(made)  # fmt: skip
        np.testing.assert_array_equal(part, A.sum(0))

        def gather(v: Any) -> Any:
            whole = lax.all_gather(v, "x", tiled=True, to="reduced")
            assert (whole * v[:1]).aval.mat.varying == {"x"}
            return whole

        gathered = plugrt.shard_map(gather, in_specs=P("x"), out_specs=P(reduced={"x"}))(rows)
        assert gathered.sharding.spec.reduced == {"x"}
        np.testing.assert_array_equal(gathered, A)
