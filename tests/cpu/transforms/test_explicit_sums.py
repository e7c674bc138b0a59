"""Types with ``unreduced`` and ``reduced`` axes: each device has a term of a sum."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.core import ShardingTypeError as ShardingTypeErrorOfJax

import plugrt
from plugrt import array_api as xp
from plugrt import lax
from plugrt.errors import InvalidArgument, ShardingTypeError, Unimplemented
from plugrt.sharding import AxisType, NamedSharding, PartitionSpec, auto_axes, reshard, use_mesh

P = PartitionSpec
Explicit = AxisType.Explicit
MESH = plugrt.make_mesh((2, 2), ("x", "y"), (Explicit, Explicit))
THEIRS = jax.sharding.AbstractMesh((2, 2), ("x", "y"), (jax.sharding.AxisType.Explicit,) * 2)
A = np.arange(32, dtype=np.float32).reshape(4, 8)


@pytest.fixture(scope="module")
def refusal() -> str:
    """Returns the error of a compiler that cannot split a value into terms, or an empty text."""
    with use_mesh(MESH):
        try:
            plugrt.jit(lambda v: reshard(v, P(unreduced={"x"})))(A)
        except Unimplemented as error:
            return str(error)
    return ""


@pytest.fixture(autouse=True)
def _in_mesh(request: pytest.FixtureRequest, refusal: str) -> Iterator[None]:
    if refusal and request.function is not test_a_compiler_that_makes_no_terms_is_refused:
        pytest.skip("the library makes no terms of a value")
    with use_mesh(MESH):
        yield


def test_a_compiler_that_makes_no_terms_is_refused(refusal: str) -> None:
    """Earlier, xla-cpu-pjrt 0.0.1, with an older Shardy, computed a multiple of the value."""
    if not refusal:
        pytest.skip("no compiler without them here")
    assert "computes multiples of them" in refusal
    for terms in (P(unreduced={"x"}), P("x", unreduced={"y"})):
        with pytest.raises(Unimplemented, match="terms of a sum"):
            reshard(put(A, *terms, unreduced=terms.unreduced), P())


def put(x: Any, *spec: Any, **sums: Any) -> Any:
    return plugrt.device_put(x, NamedSharding(MESH, P(*spec, **sums)))


def parts(x: Any) -> list[Any]:
    return [np.asarray(shard.data) for shard in x.addressable_shards]


OPERATIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "sin": (1, lambda m, x: m.sin(x)),
    "negative": (1, lambda m, x: -x),
    "twice": (1, lambda m, x: x * 2),
    "one more": (1, lambda m, x: x + 1),
    "compare": (1, lambda m, x: x > 1),
    "double": (1, lambda m, x: x + x),
    "square": (1, lambda m, x: x * x),
    "add": (2, lambda m, x, y: x + y),
    "subtract": (2, lambda m, x, y: x - y),
    "multiply": (2, lambda m, x, y: x * y),
    "maximum": (2, lambda m, x, y: m.maximum(x, y)),
    "sum": (1, lambda m, x: m.sum(x, axis=0)),
    "sum of all": (1, lambda m, x: m.sum(x)),
    "mean": (1, lambda m, x: m.mean(x, axis=1)),
    "transpose": (1, lambda m, x: x.T),
    "matmul": (2, lambda m, x, y: m.matmul(x, y.T)),
    "reshape": (1, lambda m, x: m.reshape(x, (4, 2, 4))),
    "broadcast": (1, lambda m, x: m.broadcast_to(x, (3, 4, 8))),
    "concat": (2, lambda m, x, y: m.concat([x, y], axis=1)),
    "stack": (2, lambda m, x, y: m.stack([x, y])),
    "flip": (1, lambda m, x: m.flip(x, axis=1)),
    "astype": (1, lambda m, x: x.astype(np.float16)),
}


def _draw(rng: np.random.Generator) -> tuple[list[str | None], set[str], set[str]]:
    """Draws a spec: each axis divides a dimension, is unreduced or reduced, or is absent."""
    entries: list[str | None] = [None, None]
    unreduced, reduced = set(), set()
    for axis in "xy":
        match rng.integers(5):
            case 0 | 1 as dimension if entries[dimension] is None:
                entries[dimension] = axis
            case 2:
                unreduced.add(axis)
            case 3:
                reduced.add(axis)
            case _:
                pass
    return entries, unreduced, reduced


def _type_in_jax(call: Callable[..., Any], drawn: Sequence[Any]) -> Any:
    """Returns the type that JAX infers; None if it refuses the operands."""
    with jax.sharding.use_abstract_mesh(THEIRS):
        given = [
            jax.ShapeDtypeStruct(
                A.shape,
                np.float32,
                sharding=jax.NamedSharding(THEIRS, jax.P(*entries, unreduced=u, reduced=r)),
            )
            for entries, u, r in drawn
        ]
        try:
            spec = jax.eval_shape(lambda *xs: call(jnp, *xs), *given).sharding.spec
        except (ShardingTypeErrorOfJax, NotImplementedError, ValueError):
            return None
    return spec.partitions, spec.unreduced, spec.reduced


@pytest.mark.parametrize("name", OPERATIONS)
def test_types_are_those_of_jax(name: str) -> None:
    """Same as JAX: types with `unreduced` and `reduced` axes, for random specs.

    An operation whose operands are terms of a sum is refused, unless it has a rule for them.
    """
    count, call = OPERATIONS[name]
    rng = np.random.default_rng(sum(map(ord, name)))
    known = 0
    for _ in range(24):
        drawn = [_draw(rng) for _ in range(count)]
        if rng.integers(2):
            drawn = drawn[:1] * count
        expected = _type_in_jax(call, drawn)
        arrays = [put(A, *entries, unreduced=u, reduced=r) for entries, u, r in drawn]
        jitted = plugrt.jit(lambda *xs: call(xp, *xs))
        if expected is None:
            with pytest.raises((ShardingTypeError, Unimplemented)):
                jitted(*arrays)
            continue
        known += 1
        made = jitted(*arrays)
        spec = made.aval.sharding.spec
        assert (spec.partitions, spec.unreduced, spec.reduced) == expected, drawn
        wanted = call(xp, *[xp.asarray(A)] * count)
        np.testing.assert_allclose(reshard(made, P()), wanted, rtol=1e-3, err_msg=str(drawn))
    assert known, "JAX has refused all"


@pytest.mark.parametrize(
    ("spec", "sums"),
    [((), {"x"}), ((), {"x", "y"}), (("x",), {"y"}), ((None, "y"), {"x"}), (("y",), {"x"})],
)
def test_a_value_becomes_terms_and_their_sum(spec: tuple[Any, ...], sums: set[str]) -> None:
    terms = put(A, *spec, unreduced=sums)
    assert not terms.is_fully_replicated
    assert terms.sharding.shard_shape(A.shape) == parts(terms)[0].shape
    again = reshard(terms, P("x", "y"))
    np.testing.assert_array_equal(again, A)
    for other in (P("x", unreduced={"y"}), P(unreduced={"x"}), P(reduced={"x"}), P()):
        for call in (reshard, plugrt.jit(reshard, static_argnums=1)):
            moved = call(terms, other)
            assert moved.aval.sharding.spec.unreduced == other.unreduced
            np.testing.assert_array_equal(reshard(moved, P()), A)
    np.testing.assert_array_equal(plugrt.device_put(terms, NamedSharding(MESH, P("y"))), A)


def test_products_over_divided_dimensions_are_terms() -> None:
    left, right = put(A, "x", "y"), put(A.T, "y", None)
    made = xp.matmul(left, right, out_sharding=P("x", unreduced={"y"}))
    assert made.sharding == NamedSharding(MESH, P("x", None, unreduced={"y"}))
    upper = A[:2, :4] @ A.T[:4]
    np.testing.assert_allclose(parts(made)[0], upper)
    np.testing.assert_allclose(reshard(made, P("x")), A @ A.T)
    np.testing.assert_allclose(reshard(made + made, P()), 2 * A @ A.T)
    text = plugrt.jit(lambda a, b: xp.matmul(a, b, out_sharding=P("x", unreduced={"y"})))
    assert 'unreduced={"y"}' in text.lower(left, right).as_text()
    assert "all-reduce" not in text.lower(left, right).compile().as_text()
    for wrong in (P(unreduced={"x"}), P(unreduced={"x", "y"})):
        with pytest.raises(ShardingTypeError, match="is requested"):
            xp.matmul(left, right, out_sharding=wrong)
    with pytest.raises(ShardingTypeError, match="divided differently"):
        xp.matmul(left, put(A.T), out_sharding=P("x", unreduced={"y"}))
    with pytest.raises(ShardingTypeError, match="term of a sum"):
        made @ put(A[:, :4])


def test_sums_over_divided_dimensions_are_terms() -> None:
    x = put(A, "x", "y")
    made = lax.reduce_sum(x, (0,), out_sharding=P(None, unreduced={"x"}))
    np.testing.assert_array_equal(parts(made)[0], A[:2].sum(0))
    np.testing.assert_array_equal(reshard(made, P()), A.sum(0))
    own = put(A, "y", unreduced={"x"})
    moved = lax.reduce_sum(own, (0,), out_sharding=P("y", unreduced={"x"}))
    np.testing.assert_array_equal(reshard(moved, P()), A.sum(0))
    assert lax.reduce_sum(made, (0,)).sharding.spec == P(unreduced={"x"})
    terms = put(A, "x", unreduced={"y"})
    for sums in ({"x"}, {"y"}, {"x", "y"}):
        for axes, wanted in (((0,), P(None, unreduced=sums)), ((0, 1), P(unreduced=sums))):
            asked = lax.reduce_sum(terms, axes, out_sharding=wanted)
            assert asked.aval.sharding.spec == wanted
            np.testing.assert_array_equal(reshard(asked, P()), A.sum(axes))
    with pytest.raises(ShardingTypeError, match="does not sum over"):
        lax.reduce_sum(x, (0,), out_sharding=P(None, unreduced={"y"}))
    with pytest.raises(InvalidArgument, match="unreduced"):
        xp.reshape(x, (2, 2, 8), out_sharding=P(unreduced={"x"}))


SUMMED = P(None, unreduced={"x"})
MAKERS: dict[str, Callable[[], Any]] = {
    "zeros": lambda: xp.zeros(4, out_sharding=SUMMED),
    "ones": lambda: xp.ones(4, out_sharding=SUMMED),
    "ones in a program": lambda: plugrt.jit(lambda: xp.ones(4, out_sharding=SUMMED))(),
    "arange": lambda: xp.arange(4.0, out_sharding=SUMMED),
    "take": lambda: xp.take(put(A[0], "x"), xp.asarray([1, 0]), out_sharding=SUMMED),
    "take of terms": lambda: xp.take(
        put(A[0], unreduced={"y"}), xp.asarray([1, 0]), out_sharding=SUMMED
    ),
    "repeat": lambda: xp.repeat(put(A[0], unreduced={"x"}), 2, out_sharding=P("y")),
    "auto_axes": lambda: auto_axes(lambda v: v * 2, out_sharding=SUMMED)(put(A[0], "x")),
    "out_shardings": lambda: plugrt.jit(lambda v: v * 2, out_shardings=SUMMED)(A[0]),
    "identity": lambda: plugrt.jit(lambda v: v, out_shardings=SUMMED)(put(A[0], "x")),
}
PLAIN = {
    "zeros": np.zeros(4), "ones": np.ones(4), "ones in a program": np.ones(4),
    "arange": np.arange(4.0), "take": A[0, [1, 0]], "take of terms": A[0, [1, 0]],
    "repeat": A[0].repeat(2), "auto_axes": 2 * A[0], "out_shardings": 2 * A[0], "identity": A[0],
}  # fmt: skip


@pytest.mark.parametrize("name", MAKERS)
def test_unreduced_results_sum_to_the_value(name: str) -> None:
    """In JAX, the terms of `jnp.ones(4, out_sharding=P(unreduced={"x"}))` add up to twos."""
    made = MAKERS[name]()
    assert made.aval.sharding.spec.unreduced == ({"x"} if name != "repeat" else set())
    np.testing.assert_array_equal(reshard(made, P()), PLAIN[name])


def test_terms_are_not_read_as_the_array() -> None:
    terms = put(A, unreduced={"x"})
    assert "unreduced={'x'}" in repr(terms)
    assert str(terms) == repr(terms)
    reads: list[Callable[[], Any]] = [
        lambda: np.asarray(terms),
        terms.tolist,
        lambda: pickle.dumps(terms),
        lambda: plugrt.device_get(terms),
        lambda: terms.sharding.devices_indices_map(A.shape),
        lambda: plugrt.make_array_from_callback(A.shape, terms.sharding, lambda i: A[i]),
    ]
    for read in reads:
        with pytest.raises(Unimplemented, match="term of a sum"):
            read()
    copied = plugrt.make_array_from_single_device_arrays(
        A.shape, terms.sharding, [shard.data for shard in terms.addressable_shards]
    )
    np.testing.assert_array_equal(reshard(copied, P()), A)


def test_equivalence_of_shardings_with_sums() -> None:
    terms, copies = NamedSharding(MESH, P("x", unreduced={"y"})), NamedSharding(MESH, P("x"))
    assert not terms.is_equivalent_to(copies, 2)
    assert terms.is_equivalent_to(NamedSharding(MESH, P("x", None, unreduced={"y"})), 2)
    assert NamedSharding(MESH, P("x", reduced={"y"})).is_equivalent_to(copies, 2)
    assert pickle.loads(pickle.dumps(terms.spec)) == terms.spec


def test_loops_and_branches_keep_terms() -> None:
    terms = put(A, "x", unreduced={"y"})
    looped = plugrt.jit(lambda v: lax.fori_loop(0, 3, lambda i, c: c + c, v))(terms)
    np.testing.assert_array_equal(reshard(looped, P()), 8 * A)
    rows = plugrt.jit(lambda v: lax.scan(lambda c, r: (c, r + r), 0, v)[1])(put(A, unreduced={"x"}))
    assert rows.aval.sharding.spec == P(None, None, unreduced={"x"})
    np.testing.assert_array_equal(reshard(rows, P()), 2 * A)
    with pytest.raises((ShardingTypeError, TypeError)):
        plugrt.jit(lambda a, b: lax.cond(True, lambda: a, lambda: b))(terms, put(A, "x"))


def test_padding_of_terms_is_zero() -> None:
    terms = put(A, unreduced={"x"})

    def pad(x: Any, value: float) -> Any:
        return lax.pad(x, np.float32(value), [(0, 0, 0), (0, 2, 0)])

    padded = plugrt.jit(lambda x: pad(x, 0))(terms)
    np.testing.assert_array_equal(reshard(padded, P())[:, :8], A)
    with pytest.raises(Unimplemented, match="pad"):
        plugrt.jit(lambda x: pad(x, 1))(terms)


def test_constants_beside_terms_are_zero() -> None:
    """Otherwise each device would add the constant to the sum once."""
    mask = np.arange(8) % 2 == 0
    terms = reshard(xp.asarray(A[0]), P(unreduced={"x"}))

    def call(f: Any) -> Any:
        return plugrt.jit(lambda v: reshard(f(v), P()))(terms)

    np.testing.assert_array_equal(call(lambda v: xp.where(mask, v, 0)), np.where(mask, A[0], 0))
    for f in (
        lambda v: xp.where(mask, v, 1),
        lambda v: xp.where(mask, 5.0, v),
        lambda v: xp.concat([v, xp.ones(2)]),
    ):
        with pytest.raises(ShardingTypeError, match="would be added once for each device"):
            call(f)
