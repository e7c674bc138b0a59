"""Meshes of Explicit axes: an array's type states its division, by a rule for each operation."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax, random
from plugrt.errors import ArgumentTypeError, InvalidArgument, ShardingTypeError
from plugrt.sharding import (
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
    auto_axes,
    explicit_axes,
    get_abstract_mesh,
    reshard,
    use_abstract_mesh,
    use_mesh,
)

P = PartitionSpec
Auto, Explicit = AxisType.Auto, AxisType.Explicit
MESH = plugrt.make_mesh((2, 2), ("x", "y"), (Explicit, Explicit))
MIXED = plugrt.make_mesh((2, 2), ("x", "y"), (Explicit, Auto))
A = np.linspace(0.5, 2, 32, dtype=np.float32).reshape(4, 8)
WORDS = np.arange(4, dtype=np.uint32)
B = A[::-1].copy()
V = A[0]
D = np.linspace(-1, 1, 64, dtype=np.float32).reshape(4, 4, 4) + 3 * np.eye(4, dtype=np.float32)


def put(x: Any, *spec: Any, mesh: Mesh = MESH) -> Any:
    return plugrt.device_put(x, NamedSharding(mesh, P(*spec)))


def spec_of(x: Any) -> tuple[Any, ...]:
    """Returns the spec in the type of an array."""
    return tuple(x.aval.sharding.spec)


X, Y, N, XY = "x", "y", None, ("x", "y")
RULES: list[tuple[Callable[..., Any], list[tuple[Any, tuple[Any, ...]]], tuple[Any, ...]]] = [
    (lambda a: xp.sin(a) * 2 + 1, [(A, (X, Y))], (X, Y)),
    (lambda a, b: a + b, [(A, (X, N)), (B, (N, Y))], (X, Y)),
    (lambda a, b: a < b, [(A, (XY, N)), (B, (N, N))], (XY, N)),
    (lambda a, v: a + v, [(A, (X, N)), (V, (Y,))], (X, Y)),
    (lambda a: a + a[:, :1], [(A, (X, N))], (X, N)),
    (lambda a: xp.where(a > 1, a, 0), [(A, (X, Y))], (X, Y)),
    (lambda a: xp.astype(a, xp.int32), [(A, (X, Y))], (X, Y)),
    (lambda a: lax.bitcast_convert_type(a, xp.uint8), [(A, (X, Y))], (X, Y, N)),
    (lambda a: xp.sum(a), [(A, (X, Y))], ()),
    (lambda a: xp.sum(a, axis=0), [(A, (X, Y))], (Y,)),
    (lambda a: xp.mean(a, axis=1, keepdims=True), [(A, (X, Y))], (X, N)),
    (lambda a: xp.argmax(a, axis=0), [(A, (X, Y))], (Y,)),
    (lambda a, b: xp.matmul(a, b.T), [(A, (X, N)), (B, (Y, N))], (X, Y)),
    (lambda a, b: xp.matmul(a, b.T), [(A, (N, X)), (B, (Y, N))], (N, Y)),
    (lambda d: xp.matmul(d, d), [(D, (X, N, N))], (X, N, N)),
    (lambda d, a: xp.einsum("abc,bd->acd", d, a), [(D, (X, N, N)), (A, (N, Y))], (X, N, Y)),
    (lambda a: a.T, [(A, (X, Y))], (Y, X)),
    (lambda d: xp.permute_dims(d, (2, 0, 1)), [(D, (X, N, Y))], (Y, X, N)),
    (lambda a: xp.reshape(a, (4, 2, 4)), [(A, (X, Y))], (X, Y, N)),
    (lambda a: xp.reshape(a, (4, 2, 4)), [(A, (N, XY))], (N, X, Y)),
    (lambda a: xp.reshape(a, (32,)), [(A, (X, N))], (X,)),
    (lambda d: xp.reshape(d, (16, 4)), [(D, (X, N, Y))], (X, Y)),
    (lambda a: xp.reshape(a, (1, 4, 1, 8)), [(A, (X, Y))], (N, X, N, Y)),
    (lambda a: xp.expand_dims(a, axis=0), [(A, (X, Y))], (N, X, Y)),
    (lambda a: xp.broadcast_to(a, (3, 4, 8)), [(A, (X, Y))], (N, X, Y)),
    (lambda a, b: xp.concat([a, b], axis=1), [(A, (X, N)), (B, (X, N))], (X, N)),
    (lambda a, b: xp.stack([a, b]), [(A, (X, Y)), (B, (X, Y))], (N, X, Y)),
    (lambda a: xp.flip(a, axis=0), [(A, (X, Y))], (X, Y)),
    (lambda a: a[:, 2:6], [(A, (X, Y))], (X, Y)),
    (lambda a: a[1], [(A, (N, Y))], (Y,)),
    (lambda a: a[xp.asarray([0, 2])], [(A, (N, Y))], (N, Y)),
    (lambda a: xp.take(a, xp.asarray([0, 2]), axis=1), [(A, (X, N))], (X, N)),
    (lambda a: a.at[0].set(1.0), [(A, (N, Y))], (N, Y)),
    (lambda a: a.at[:, xp.asarray([0, 2])].add(1.0), [(A, (X, N))], (X, N)),
    (lambda a: lax.dynamic_slice(a, (0, 2), (4, 4)), [(A, (X, Y))], (X, Y)),
    (lambda a, b: lax.dynamic_update_slice(a, b, (0, 0)), [(A, (X, Y)), (B, (X, Y))], (X, Y)),
    (lambda a: lax.pad(a, np.float32(0), [(0, 0, 0), (2, 2, 0)]), [(A, (X, Y))], (X, Y)),
    (lambda a: xp.sort(a, axis=1), [(A, (X, N))], (X, N)),
    (lambda a: xp.cumulative_sum(a, axis=1), [(A, (X, N))], (X, N)),
    (lambda a: xp.zeros_like(a), [(A, (X, Y))], (X, Y)),
    (lambda a: xp.arange(8.0) + a, [(A, (X, N))], (X, N)),
    (lambda d: xp.linalg.cholesky(d @ xp.matrix_transpose(d)), [(D, (X, N, N))], (X, N, N)),
    (lambda d: xp.linalg.inv(d), [(D, (XY, N, N))], (XY, N, N)),
    (lambda a: lax.fori_loop(0, 3, lambda i, v: v * 2, a), [(A, (X, Y))], (X, Y)),
    (lambda a: lax.scan(lambda c, r: (c, c * r), a[0], a)[1], [(A, (N, Y))], (N, Y)),
    (lambda a, b: lax.cond(True, lambda: a, lambda: b), [(A, (X, Y)), (B, (X, Y))], (X, Y)),
    (lambda a: plugrt.jit(lambda u: u.T)(a), [(A, (X, Y))], (Y, X)),
    (lambda a: a + random.uniform(random.PRNGKey(0), (4, 8)), [(A, (X, N))], (X, N)),
]


@plugrt.jit
def call_all(given: list[list[Any]]) -> list[Any]:
    """Calls all functions of `RULES` in one program; under a mesh, checks the results' types."""
    results = []
    for case, ((call, _, expected), arrays) in enumerate(zip(RULES, given, strict=True)):
        results.append(call(*arrays))
        if not get_abstract_mesh().empty:
            assert spec_of(results[-1]) == expected, case
            assert results[-1].aval.sharding.mesh == MESH.abstract_mesh
    return results


def test_results_have_the_type_of_their_operands() -> None:
    plain = call_all([[x for x, _ in given] for _, given, _ in RULES])
    with use_mesh(MESH):
        arrays = [[put(x, *spec) for x, spec in given] for _, given, _ in RULES]
        eager = [call(*each) for (call, _, _), each in zip(RULES, arrays, strict=True)]
        jitted = call_all(arrays)
    for case, (_, _, expected) in enumerate(RULES):
        for result in (eager[case], jitted[case]):
            assert result.sharding == NamedSharding(MESH, P(*expected)), case
            assert spec_of(result) == expected, case
            np.testing.assert_allclose(result, plain[case], 1e-4, 1e-5, err_msg=f"case {case}")


OPEN: list[tuple[Callable[..., Any], list[tuple[Any, tuple[Any, ...]]]]] = [
    (lambda a, b: a + b, [(A, (X, N)), (B, (Y, N))]),
    (lambda a, b: a + b, [(A, (X, N)), (B, (N, X))]),
    (lambda a, b: xp.matmul(a, b.T), [(A, (N, X)), (B, (N, X))]),
    (lambda a, b: xp.concat([a, b], axis=0), [(A, (X, N)), (B, (N, X))]),
    (lambda a: xp.reshape(a, (32,)), [(A, (N, X))]),
    (lambda d: xp.reshape(d, (2, 2, 4, 2, 2)), [(D, (X, N, N))]),
    (lambda a: a[0], [(A, (X, N))]),
    (lambda a: a[:, 2:5], [(A, (N, X))]),
    (lambda a: a.at[0].set(1.0), [(A, (X, N))]),
    (lambda a: xp.sort(a, axis=1), [(A, (N, X))]),
    (lambda a: xp.cumulative_sum(a, axis=1), [(A, (N, X))]),
    (lambda d: xp.linalg.inv(d), [(D, (N, X, N))]),
    (lambda a: lax.scan(lambda c, _: (reshard(c, P()), None), a, None, length=2), [(A, (X, N))]),
    (lambda a, b: lax.cond(True, lambda: a, lambda: b), [(A, (X, N)), (B, (N, X))]),
    (lambda a: plugrt.with_sharding_constraint(a, P("y")), [(A, (X, N))]),
]


@pytest.mark.parametrize("case", range(len(OPEN)))
def test_a_result_whose_type_is_open_is_refused(case: int) -> None:
    """The operands do not determine how the result is divided.

    Same as JAX: over axes of `AxisType.Explicit` such a call raises; `out_sharding=` or
    `reshard` says how.
    """
    call, given = OPEN[case]
    with use_mesh(MESH):
        arrays = [put(x, *spec) for x, spec in given]
        with pytest.raises(ShardingTypeError):
            plugrt.jit(call)(*arrays)


def test_out_sharding_says_how_a_result_is_divided() -> None:
    with use_mesh(MESH):
        a = put(A, N, X)
        key = random.PRNGKey(0)
        made = {
            "matmul": xp.matmul(a, a.T, out_sharding=P("x")),
            "einsum": plugrt.jit(lambda a: xp.einsum("ab,cb->ac", a, a, out_sharding=P("x")))(a),
            "reshape": xp.reshape(a, (32,), out_sharding=P("x")),
            "take": xp.take(a, xp.asarray([1, 0]), axis=1, out_sharding=P(None, "y")),
            "at": put(A, X).at[0].set(1.0, out_sharding=P("x")),
            "get": put(A, X).at[xp.asarray([0, 2])].get(out_sharding=P("x")),
            "repeat": xp.repeat(put(A, X), 2, axis=0, out_sharding=P("x")),
            "zeros": xp.zeros((8, 2), out_sharding=P("x")),
            "traced": plugrt.jit(lambda: xp.ones((8, 2), out_sharding=P("x")))(),
            "arange": xp.arange(8.0, out_sharding=P("x")),
            "normal": random.normal(key, (4, 8), out_sharding=P("x")),
            "rbg": random.uniform(random.key(0, impl="rbg"), (8,), out_sharding=P("x")),
            "bits": lax.rng_bit_generator(WORDS, (8,), out_sharding=P("x"))[1],
            "like": lax.broadcast_like(A[:, :1], put(A, X)),
        }
        assert spec_of(random.uniform(random.key(0, impl="rbg"), (8,))) == (N,)
        assert spec_of(lax.rng_bit_generator(WORDS, (8,), out_sharding=P("x"))[0]) == (N,)
        with pytest.raises(ShardingTypeError, match="incompatible shardings for broadcasting"):
            lax.broadcast_like(put(A[0], X), put(A, X))
    for name, result in made.items():
        wanted = (N, Y) if name == "take" else (X, *[N] * (result.ndim - 1))
        assert spec_of(result) == wanted, name
    np.testing.assert_allclose(made["matmul"], A @ A.T, rtol=1e-5)
    np.testing.assert_array_equal(made["repeat"], np.repeat(A, 2, axis=0))
    np.testing.assert_array_equal(made["normal"], random.normal(key, (4, 8)))
    np.testing.assert_array_equal(made["bits"], lax.rng_bit_generator(WORDS, (8,))[1])
    np.testing.assert_array_equal(made["like"], np.broadcast_to(A[:, :1], A.shape))


def test_out_sharding_is_over_explicit_axes_of_the_mesh_around() -> None:
    with use_mesh(plugrt.make_mesh((2,), ("x",))), pytest.raises(InvalidArgument, match="Explicit"):
        xp.matmul(A, A.T, out_sharding=P("x"))
    other = plugrt.make_mesh((2,), ("z",), (Explicit,))
    with use_mesh(MESH), pytest.raises(InvalidArgument, match="the mesh around it"):
        xp.zeros((8,), out_sharding=NamedSharding(other, P("z")))
    with pytest.raises(InvalidArgument, match="there is no mesh in the context"):
        xp.matmul(A, A.T, out_sharding=P("x"))
    with use_mesh(MESH), pytest.raises(ArgumentTypeError):
        xp.matmul(A, A.T, out_sharding="x")


def test_reshard_changes_the_type() -> None:
    with use_mesh(MESH):
        tree = {"a": put(A, X, Y), "b": np.ones((4, 2), np.float32)}
        made = reshard(tree, {"a": P(None, "x"), "b": P("y")})
        traced = plugrt.jit(lambda t: reshard(t, {"a": P(None, "x"), "b": P("y")}))(tree)
    for found in (made, traced):
        assert found["a"].sharding == NamedSharding(MESH, P(None, "x"))
        assert found["b"].sharding == NamedSharding(MESH, P("y", None))
        np.testing.assert_array_equal(found["a"], A)


def test_the_mesh_of_an_argument_is_enough() -> None:
    @plugrt.jit
    def double(a: Any) -> Any:
        assert spec_of(a) == (X, N)
        return 2 * a

    assert double(put(A, X)).sharding == NamedSharding(MESH, P("x", None))
    assert auto_axes(lambda a: a.T @ a, out_sharding=NamedSharding(MESH, P("x")))(
        put(A, X)
    ).sharding == NamedSharding(MESH, P("x", None))


def test_auto_axes_leaves_a_function_to_the_compiler() -> None:
    def product(a: Any, scale: Any = 1) -> Any:
        assert get_abstract_mesh().axis_types == (Auto, Auto)
        assert spec_of(a) == (N, N)
        return scale * a.T @ a

    with use_mesh(MESH):
        a = put(A, X, Y)
        for call in (
            auto_axes(product, out_sharding=P("x")),
            auto_axes(out_sharding=P("x"))(product),
        ):
            for made in (call(a), plugrt.jit(call)(a)):
                assert made.sharding == NamedSharding(MESH, P("x", None))
                np.testing.assert_allclose(made, A.T @ A, rtol=1e-5)
        late = plugrt.jit(lambda a: auto_axes(product)(a, out_sharding=P(None, "y")))(a)
        assert spec_of(late) == (N, Y)
        with pytest.raises(ArgumentTypeError, match="out_sharding"):
            auto_axes(product)(a)


def test_explicit_axes_within_auto_ones() -> None:
    auto = plugrt.make_mesh((2, 2), ("x", "y"))

    def inner(a: Any) -> Any:
        assert spec_of(a) == (X, N)
        return a * 2

    with use_mesh(auto):
        a = put(A, N, Y, mesh=auto)
        made = plugrt.jit(explicit_axes(inner, in_sharding=P("x")))(a)
        np.testing.assert_array_equal(made, 2 * A)


def test_use_abstract_mesh_changes_types_from_there_on() -> None:
    @plugrt.jit
    def mixed(a: Any) -> Any:
        with use_abstract_mesh(MESH.abstract_mesh.update_axis_types({"y": Auto})):
            b = reshard(a, P("x"))
            assert spec_of(b) == (X, N)
            assert b.aval.sharding.mesh.axis_types == (Explicit, Auto)
            c = b + 1
            assert spec_of(c) == (X, N)
        return reshard(c, P(None, "x"))

    with use_mesh(MESH):
        made = mixed(put(A, X, Y))
    assert made.sharding == NamedSharding(MESH, P(None, "x"))
    np.testing.assert_array_equal(made, A + 1)


def test_types_are_over_explicit_axes_alone() -> None:
    @plugrt.jit
    def double(a: Any) -> Any:
        assert spec_of(a) == (X, N)
        return 2 * a

    with use_mesh(MIXED):
        made = double(put(A, X, Y, mesh=MIXED))
    assert made.sharding.mesh == MIXED
    assert made.sharding.spec[0] == "x"
    np.testing.assert_array_equal(made, 2 * A)


def test_shard_map_reads_the_specs_of_its_arguments() -> None:
    def parts(a: Any) -> Any:
        assert a.shape == (2, 4)
        assert get_abstract_mesh().manual_axes == ("x", "y")
        return lax.psum(a, "y")

    with use_mesh(MESH):
        mapped = plugrt.shard_map(parts, out_specs=P("x"))
        for call in (mapped, plugrt.jit(mapped)):
            made = call(put(A, X, Y))
            assert made.sharding.is_equivalent_to(NamedSharding(MESH, P("x")), 2)
            np.testing.assert_allclose(made, A[:, :4] + A[:, 4:], rtol=1e-6)
        after = plugrt.jit(lambda a: mapped(a) * 2)(put(A, X, Y))
        assert spec_of(after) == (X, N)


def test_programs_state_their_types() -> None:
    with use_mesh(MESH):
        lowered = plugrt.jit(lambda a: xp.sum(a * 2, axis=0)).lower(put(A, X, Y))
        text = lowered.as_text()
        assert 'sdy.sharding_constraint %0 <@mesh, [{"x"}, {"y"}]>' in text
        assert '<@mesh, [{"y"}]>' in text
        assert lowered.compile()(put(A, X, Y)).sharding == NamedSharding(MESH, P("y"))
        whole = plugrt.jit(lambda a: xp.sum(a)).lower(put(A, X, Y)).as_text()
        assert "sdy.sharding_constraint %0 <@mesh, []>" in whole


def test_shapes_of_results_have_types() -> None:
    """Same as JAX: `eval_shape` over Explicit axes gives shardings over an `AbstractMesh`."""
    with use_mesh(MESH):
        for call in (plugrt.jit(lambda a: a * 2), plugrt.jit(lambda a: a)):
            [shape] = [call.eval_shape(put(A, X, Y))]
            assert shape.sharding == NamedSharding(MESH.abstract_mesh, P("x", "y"))
    outside = plugrt.jit(lambda a: xp.sum(a, axis=1)).eval_shape(put(A, X, Y))
    assert outside.sharding == NamedSharding(MESH.abstract_mesh, P("x"))


def test_out_sharding_of_host_data_and_of_methods() -> None:
    """Same as JAX: an array has an entry of its spec for each dimension."""
    with use_mesh(MESH):
        for make in (xp.asarray, xp.array):
            made = make(A, out_sharding=P("x"))
            assert made.sharding == NamedSharding(MESH, P("x", None))
        turned = put(A, X).reshape(4, -1, out_sharding=P(None, "y"))
        assert turned.sharding == NamedSharding(MESH, P(None, "y"))
        np.testing.assert_array_equal(turned, A.reshape(4, -1))
        columns = xp.reshape(put(A, X), (4, -1), order="F", out_sharding=P("x"))
        np.testing.assert_array_equal(columns, A.reshape(4, -1, order="F"))
        ends = xp.pad(put(A, X), ((0, 0), (2, 1)), mode="reflect")
        assert ends.sharding == NamedSharding(MESH, P("x", None))
        np.testing.assert_array_equal(ends, np.pad(A, ((0, 0), (2, 1)), mode="reflect"))


def test_in_and_out_shardings_are_types() -> None:
    @plugrt.jit(in_shardings=P("x"), out_shardings=P("y"))
    def double(a: Any) -> Any:
        assert spec_of(a) == (X, N)
        return 2 * a

    with use_mesh(MESH):
        assert double(A).sharding.is_equivalent_to(NamedSharding(MESH, P("y")), 2)


def test_a_mesh_of_one_device_has_types() -> None:
    one = plugrt.make_mesh((1,), ("x",), (Explicit,))
    with use_mesh(one):
        a = put(A, X, mesh=one)
        twice = plugrt.jit(lambda a: reshard(2 * a, P(None, "x")))
        assert "sharding_constraint" not in twice.lower(a).as_text()
        assert twice(a).sharding == NamedSharding(one, P(None, "x"))
        assert xp.matmul(a.T, a, out_sharding=P("x")).sharding == NamedSharding(one, P("x", None))
        np.testing.assert_array_equal(twice(a), 2 * A)


def test_another_sharding_is_another_trace() -> None:
    traced = []

    @plugrt.jit
    def double(a: Any) -> Any:
        traced.append(spec_of(a))
        return 2 * a

    with use_mesh(MESH):
        for spec in ((X, N), (N, Y), (X, N)):
            double(put(A, *spec))
    assert traced == [(X, N), (N, Y)]


def test_a_loop_that_is_traced_twice_has_the_types_of_the_second() -> None:
    def body(c: Any, _: Any) -> Any:
        a, number = c
        return (a * 2, number + np.float32(1)), xp.sum(a, axis=0)

    with use_mesh(MESH):
        run = plugrt.jit(lambda a: lax.scan(body, (a, 0), None, length=3))
        (last, _), rows = run(put(A, X, Y))
    assert (spec_of(last), spec_of(rows)) == ((X, Y), (N, Y))
    np.testing.assert_allclose(last, 8 * A)


def test_values_of_two_meshes_do_not_meet() -> None:
    other = plugrt.make_mesh((4,), ("z",), (Explicit,))
    with pytest.raises(ShardingTypeError, match="different meshes"):
        plugrt.jit(lambda a, b: a + b)(put(A, X), put(A, "z", mesh=other))


def test_meshes_of_other_types_differ() -> None:
    auto = Mesh(MESH.devices, MESH.axis_names)
    assert auto != MESH
    assert len({auto, MESH, MIXED}) == 3
    assert MESH.explicit_axes == ("x", "y")
    assert (MIXED.explicit_axes, MIXED.auto_axes) == (("x",), ("y",))
    assert MESH.abstract_mesh == AbstractMesh((2, 2), ("x", "y"), (Explicit, Explicit))
    assert (MESH.are_all_axes_explicit, MESH.are_all_axes_auto) == (True, False)
    assert (auto.are_all_axes_explicit, auto.are_all_axes_auto) == (False, True)
    assert (MIXED.are_all_axes_explicit, MIXED.are_all_axes_auto) == (False, False)
    for mesh in (MESH, MIXED, MESH.abstract_mesh):
        assert pickle.loads(pickle.dumps(mesh)) == mesh
    renamed = MESH.abstract_mesh.update(axis_names=("a", "b"))
    assert (renamed.axis_names, renamed.axis_types) == (("a", "b"), (Explicit, Explicit))


def test_specs_that_explicit_axes_cannot_express_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="no axis of"):
        NamedSharding(MESH, P(P.UNCONSTRAINED))
    in_host = NamedSharding(MESH, P("x"), memory_kind="pinned_host")
    with use_mesh(MESH):
        with pytest.raises(InvalidArgument, match="memory"):
            xp.zeros(8, out_sharding=in_host)
        smaller = AbstractMesh((2,), ("x",), (Explicit,))
        with (
            pytest.raises(InvalidArgument, match="cannot change the size"),
            use_abstract_mesh(smaller),
        ):
            pass


def test_avals_of_arguments_have_their_types() -> None:
    with use_mesh(MESH):
        lowered = plugrt.jit(lambda a: a * 2, in_shardings=P("x")).lower(A)
    ((aval,), _) = lowered.in_avals
    assert aval.sharding == NamedSharding(MESH.abstract_mesh, P("x", None))


def test_over_some_explicit_axes_the_compiler_divides_over_the_others_alone() -> None:
    with use_mesh(MIXED):
        double = plugrt.jit(lambda a: a * 2)
        text = double.lower(put(A, X, N, mesh=MIXED)).as_text()
        assert text.count('[{"x", ?}, {?}]') == 2
        of_copies = double.lower(put(A, N, Y, mesh=MIXED)).as_text()
        assert '[{?}, {?}], replicated={"x"}' in of_copies
        both = plugrt.jit(lambda a: plugrt.with_sharding_constraint(a, P("y")))
        made = both(put(A, X, mesh=MIXED))
        assert made.sharding == NamedSharding(MIXED, P(("x", "y")))
        np.testing.assert_array_equal(made, A)
    narrow = plugrt.make_mesh((1, 2), ("x", "y"), (Explicit, Auto))
    with use_mesh(narrow):
        ones = plugrt.jit(lambda: xp.ones((2, 2), out_sharding=P("x", None)))()
    assert ones.sharding == NamedSharding(narrow, P("x", None))


def test_explicit_axes_within_a_program_over_auto_ones() -> None:
    auto = plugrt.make_mesh((2, 2), ("x", "y"))

    @plugrt.jit
    def f(a: Any) -> Any:
        with use_abstract_mesh(MESH.abstract_mesh):
            b = reshard(a * 2, P(None, "y"))
            assert spec_of(xp.sin(b)) == (N, Y)
        return reshard(b, P(None, None))

    with use_mesh(auto):
        made = f(put(A, X, Y, mesh=auto))
    assert made.sharding == NamedSharding(auto, P(None, "y"))
    np.testing.assert_array_equal(made, 2 * A)
