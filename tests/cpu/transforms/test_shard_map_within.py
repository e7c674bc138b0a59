"""shard_map within shard_map, and in control flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax
from plugrt.errors import ArgumentError
from plugrt.sharding import PartitionSpec as P
from support.behaviour import behaviour

A = np.arange(64, dtype=np.float32).reshape(8, 8)
MESH = plugrt.make_mesh((2, 4), ("x", "y"))
BOTH = ("x", "y")
X = P("x")


def _map(in_specs: Any, out_specs: Any, f: Any, **more: Any) -> Any:
    return plugrt.shard_map(f, mesh=MESH, in_specs=in_specs, out_specs=out_specs, **more)


def inner(f: Any, in_specs: Any, out_specs: Any, **more: Any) -> Any:
    return _map(in_specs, out_specs, f, axis_names={"y"}, **more)


NESTED: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "over the rest": (
        lambda v: inner(lambda u: lax.psum(u, "y"), P("y"), P())(v), P("x"),
        A.reshape(2, 4, 8).sum(1),
    ),
    "over those around, too": (
        lambda v: inner(lambda u: lax.psum(u, BOTH), P("y"), P())(v), P(),
        A.sum(0, keepdims=True),
    ),
    "where it is": (
        lambda v: inner(lambda u: 0 * u + 10 * lax.axis_index("x") + lax.axis_index("y"), P("y"),
                        P("y"))(v) + 100 * lax.axis_index("x"), P("x"),
        np.repeat([0, 1, 2, 3, 110, 111, 112, 113], 8).reshape(8, 8),
    ),
    "in a jitted function": (
        lambda v: plugrt.jit(lambda w: inner(lambda u: lax.pmax(u, "y"), P("y"), P())(w))(v),
        P("x"), A.reshape(2, 4, 8).max(1),
    ),
    "in a loop": (
        lambda v: lax.fori_loop(0, 3, lambda _, c: inner(
            lambda u: lax.ppermute(u, "y", [(i, (i + 1) % 4) for i in range(4)]), P("y"), P("y"),
        )(c), v), P("x"), np.concatenate([np.roll(A[:4], 3, 0), np.roll(A[4:], 3, 0)]),
    ),
    "with the mesh around": (
        lambda v: plugrt.shard_map(lambda u: lax.psum(u, "y"), in_specs=P("y"), out_specs=P(),
                                   axis_names={"y"})(v), P("x"), A.reshape(2, 4, 8).sum(1),
    ),
}  # fmt: skip


@behaviour(106, "shard_map within shard_map is over further axes of the mesh; all are bound")
@pytest.mark.parametrize("name", NESTED)
def test_within_another(name: str) -> None:
    function, given, expected = NESTED[name]
    mapped = _map(X, given, function, axis_names={"x"})
    np.testing.assert_array_equal(mapped(A), expected)
    np.testing.assert_array_equal(plugrt.jit(lambda v: mapped(v) + 1)(A), expected + 1)


@behaviour(106, "the replication check follows values through inner shard_maps")
def test_the_check_of_nested_regions() -> None:
    varies = inner(lambda u: u, P("y"), P())
    with pytest.raises(ArgumentError, match="differs along the axis 'y'"):
        _map(X, X, varies, axis_names={"x"})(A)
    summed = inner(lambda u: lax.psum(u, "y"), P("y"), P())
    with pytest.raises(ArgumentError, match="differs along the axis 'x'"):
        _map(X, P(), summed, axis_names={"x"})(A)
    index = inner(lambda u: u + lax.axis_index("x"), P("y"), P("y"))
    with pytest.raises(ArgumentError, match="differs along the axis 'x'"):
        _map(P(), P(), index, axis_names={"x"})(A)
    own = _map(P(), P(), inner(lambda u: u + lax.axis_index("y"), P("y"), P("y")), axis_names={"x"})
    np.testing.assert_array_equal(own(A), A + np.repeat(np.arange(4), 2)[:, None])


@behaviour(106, "shard_map in a branch and in scan of a jitted function")
def test_in_control_flow() -> None:
    total = _map(X, P(), lambda v: lax.psum(v, "x"), axis_names={"x"})
    call = plugrt.jit(lambda p, v: lax.cond(p, total, lambda u: u[:4], v))
    np.testing.assert_array_equal(call(True, A), A[:4] + A[4:])
    np.testing.assert_array_equal(call(False, A), A[:4])
    steps = plugrt.jit(lambda v: lax.scan(lambda c, _: (c + xp.sum(total(v)), c), 0.0, None, 3)[0])
    assert steps(A) == 3 * A.sum()


def test_within_another_it_is_over_the_axes_that_are_left() -> None:
    """Same as JAX: a `shard_map` without ``axis_names`` within another."""
    mesh = plugrt.make_mesh((2, 2), ("x", "y"))
    v = np.arange(4, dtype=np.int32)

    def inner(part: Any) -> Any:
        return lax.psum(part, "y") + lax.axis_index("y")

    for given in ({"mesh": mesh}, {}):

        def outer(part: Any, given: Any = given) -> Any:
            return plugrt.shard_map(inner, in_specs=P("y"), out_specs=P("y"), **given)(part)

        mapped = plugrt.shard_map(
            outer, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}
        )
        assert plugrt.jit(mapped)(v).tolist() == [1, 2, 5, 6]
