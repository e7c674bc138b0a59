"""Each collective under pmap, nested pmap and shard_map, over one axis or both, with each dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax, pmap
from plugrt.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    DtypeError,
    ShapeError,
    UnboundAxis,
)
from plugrt.sharding import PartitionSpec as P
from support.behaviour import behaviour

Host = npt.NDArray[Any]
BOTH = ("x", "y")
DTYPES = (np.bool_, np.int8, np.uint32, np.int32, np.float16, ml_dtypes.bfloat16, np.float32,
          np.complex64)  # fmt: skip
NUMBERS = np.random.default_rng(0).integers(0, 4, (8, 8, 2))
"""A part for each of 8 devices, of small numbers, whose sums are exact in each dtype."""
ORDERED = ("pmax", "pmin")


def total(values: Host) -> Host:
    summed: Host = values.astype(np.int32).sum(0) if values.dtype == bool else values.sum(0)
    return summed.astype(np.int32 if values.dtype == bool else values.dtype)


def mean(values: Host) -> Host:
    exact = values.dtype.kind in "biu"
    return (total(values) / len(values)).astype(np.float32 if exact else values.dtype)


def split_and_join(values: Host) -> Host:
    parts = [np.split(v, len(values), axis=0) for v in values]
    return np.stack([np.concatenate([p[k] for p in parts], axis=1) for k in range(len(values))])


def in_groups(values: Host) -> Host:
    return np.stack([total(values[:1]), *[total(values[1:])] * (len(values) - 1)])


def each(value: Host, values: Host) -> Host:
    return np.stack([value] * len(values))


# A collective of an array and an axis, and its result computed from all parts along the axis.
Case = tuple[Callable[[Any, Any], Any], Callable[[Host], Host]]
CASES: dict[str, Case] = {
    "psum": (lax.psum, lambda v: each(total(v), v)),
    "psum, a dimension": (
        lambda v, a: lax.psum(v, (*((a,) if isinstance(a, str) else a), 0)),
        lambda v: each(total(total(v)), v),
    ),
    "psum, groups": (
        lambda v, a: lax.psum(
            v, a, axis_index_groups=[[0], list(range(1, lax.axis_size(a)))]),
        in_groups,
    ),
    "pmean": (lax.pmean, lambda v: each(mean(v), v)),
    "pmax": (lax.pmax, lambda v: each(v.max(0), v)),
    "pmin": (lax.pmin, lambda v: each(v.min(0), v)),
    "all_gather": (lax.all_gather, lambda v: each(v, v)),
    "all_gather, tiled": (
        lambda v, a: lax.all_gather(v, a, axis=1, tiled=True),
        lambda v: each(np.concatenate([*v], axis=1), v),
    ),
    "ppermute": (
        lambda v, a: lax.ppermute(v, a, [(k, k + 1) for k in range(lax.axis_size(a) - 1)]),
        lambda v: np.concatenate([np.zeros_like(v[:1]), v[:-1]]),
    ),
    "pshuffle": (
        lambda v, a: lax.pshuffle(v, a, [*reversed(range(lax.axis_size(a)))]), lambda v: v[::-1],
    ),
    "all_to_all": (lambda v, a: lax.all_to_all(v, a, 0, 1, tiled=True), split_and_join),
    "psum_scatter": (
        lambda v, a: lax.psum_scatter(v, a, tiled=True),
        lambda v: np.stack(np.split(total(v), len(v))),
    ),
    "pbroadcast": (lambda v, a: lax.pbroadcast(v, a, 1), lambda v: each(v[1], v)),
    "axis_index": (
        lambda v, a: lax.axis_index(a).astype(np.int32),
        lambda v: np.arange(len(v), dtype=np.int32),
    ),
}  # fmt: skip


def run(axis: Any) -> Callable[[Any], Any]:
    def call(parts: dict[str, Any]) -> dict[str, dict[str, Any]]:
        return {
            name: {d: function(v, axis) for d, v in parts.items() if is_taken(name, np.dtype(d))}
            for name, (function, _) in CASES.items()
        }

    return call


def is_taken(name: str, dtype: np.dtype[Any]) -> bool:
    return name not in ORDERED or dtype.kind != "c"


def nested(axis: Any) -> Callable[[Any], Any]:
    return lambda parts: plugrt.tree.map(
        lambda v: np.asarray(v).reshape(8, *v.shape[2:]),
        pmap(lambda outer: pmap(run(axis), "y")(outer), "x")(
            plugrt.tree.map(lambda v: v.reshape(2, 4, *v.shape[1:]), parts)),
    )  # fmt: skip


def sharded(axis: Any, names: Sequence[str]) -> Callable[[Any], Any]:
    def on_part(parts: Any) -> Any:
        found = run(axis)(plugrt.tree.map(lambda v: v[0], parts))
        return plugrt.tree.map(lambda v: v[None], found)

    return plugrt.shard_map(
        on_part, mesh=plugrt.make_mesh((2, 4), BOTH), in_specs=P(tuple(names)),
        out_specs=P(tuple(names)), axis_names=set(names),
    )  # fmt: skip


def along(axis: Any) -> list[list[int]]:
    """Returns the groups of devices along an axis of the 2 x 4 mesh."""
    grid = np.arange(8).reshape(2, 4)
    if axis == "x":
        return [[*map(int, column)] for column in grid.T]
    if axis == "y":
        return grid.tolist()  # type: ignore[no-any-return]
    return [[*map(int, (grid if axis == BOTH else grid.T).ravel())]]


WAYS: dict[str, tuple[Callable[[Any], Any], list[list[int]]]] = {
    "pmap": (pmap(run("i"), "i"), [[*range(8)]]),
    "nested pmap, inner": (nested("y"), along("y")),
    "nested pmap, outer": (nested("x"), along("x")),
    "nested pmap, both": (nested(("y", "x")), along(("y", "x"))),
    "shard_map, one of two": (sharded("y", BOTH), along("y")),
    "shard_map, the other": (sharded("x", BOTH), along("x")),
    "shard_map, both": (sharded(BOTH, BOTH), along(BOTH)),
    "shard_map, one alone": (sharded("y", "y"), [[0, 1, 2, 3]]),
}


@behaviour(
    108, "each collective gives NumPy's numbers over one axis of two and both, in each dtype"
)
@pytest.mark.parametrize("way", WAYS)
def test_as_numpy(way: str) -> None:
    call, rows = WAYS[way]
    count = sum(map(len, rows))
    parts = {np.dtype(d).name: NUMBERS[:count].astype(d) for d in DTYPES}
    found = call(parts)
    for name, (_, expected) in CASES.items():
        for dtype, values in parts.items():
            if not is_taken(name, np.dtype(dtype)):
                continue
            joined = [expected(values[row]) for row in rows]
            wanted = np.empty((count, *joined[0].shape[1:]), joined[0].dtype)
            for row, result in zip(rows, joined, strict=True):
                wanted[row] = result
            result = found[name][dtype]
            assert result.dtype == wanted.dtype, (name, dtype)
            np.testing.assert_array_equal(np.asarray(result), wanted, f"{name} of {dtype}")


@behaviour(108, "`ragged_all_to_all` sends slices of any lengths, where the receivers want them",
           jax="has no CPU; the numbers come from its documentation and NumPy")  # fmt: skip
def test_ragged_all_to_all() -> None:
    def call(*args: Any) -> Any:
        return lax.ragged_all_to_all(*args, axis_name="y")

    operand, output = np.int32([[1, 2, 2], [3, 4, 0]]), np.zeros((2, 4), np.int32)
    vectors = [np.int32(v) for v in ([[0, 1], [0, 1]], [[1, 2], [1, 1]], [[0, 0], [1, 2]],
                                     [[1, 1], [2, 1]])]  # fmt: skip
    expected = [[1, 3, 0, 0], [2, 2, 4, 0]]
    np.testing.assert_array_equal(pmap(call, "y")(operand, output, *vectors), expected)
    random = np.random.default_rng(1)
    sizes = random.integers(0, 3, (4, 4))  # the size that each device sends to each
    data = random.normal(size=(4, 12, 2)).astype(np.float32)
    starts = random.integers(0, 9, (4, 4))
    places = np.concatenate([np.zeros((1, 4), int), np.cumsum(sizes, 0)[:-1]])
    into = np.full((4, 10, 2), -1, np.float32)
    wanted = into.copy()
    for source in range(4):
        for target in range(4):
            count, at, start = sizes[source, target], places[source, target], starts[source, target]
            wanted[target, at : at + count] = data[source, start : start + count]
    given = (data, into, starts, sizes, places, sizes.T)
    np.testing.assert_array_equal(pmap(call, "y")(*given), wanted)
    mapped = plugrt.shard_map(
        lambda *args: call(*(v[0] for v in args))[None], mesh=plugrt.make_mesh((2, 4), BOTH),
        in_specs=P("y"), out_specs=P("y"),
    )  # fmt: skip
    np.testing.assert_array_equal(mapped(*given), wanted)


@behaviour(108, "sums and extremes over dimensions alone need no mapped axis")
def test_over_dimensions_alone() -> None:
    x = NUMBERS.astype(np.float32)
    np.testing.assert_array_equal(lax.psum(x, 0), x.sum(0))
    np.testing.assert_array_equal(lax.psum(x > 1, (0, -1)), (x > 1).sum((0, 2)))
    np.testing.assert_array_equal(lax.pmean(x, (0, 1)), x.mean((0, 1)))
    np.testing.assert_array_equal(plugrt.jit(lambda v: lax.pmax(v, 1))(x), x.max(1))
    np.testing.assert_array_equal(lax.pmin(xp.asarray(x), (1,)), x.min(1))


def over_i(function: Callable[[Any], Any]) -> Callable[[], Any]:
    return lambda: pmap(function, "i")(NUMBERS[:4].astype(np.float32))


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no axis is bound": (lambda: lax.pbroadcast(1.0, "i", 0), UnboundAxis, "'i'; collectives are"),
    "an axis that is not bound": (over_i(lambda v: lax.pbroadcast(v, "j", 0)), UnboundAxis,
                                  "'j'; axes .* bound: 'i'"),
    "one of two": (over_i(lambda v: lax.axis_size(("i", "k"))), UnboundAxis, "'k'; axes .*: 'i'"),
    "in shard_map": (lambda: sharded("q", BOTH)({"float32": NUMBERS.astype(np.float32)}),
                     UnboundAxis, "'q'; axes .* bound: 'x', 'y'"),
    "an axis twice": (over_i(lambda v: lax.psum(v, ("i", "i"))), ArgumentError, "each axis once"),
    "a dimension out of range": (over_i(lambda v: lax.psum(v, ("i", 2))), AxisError, "psum"),
    "a dimension twice": (lambda: lax.psum(NUMBERS, (0, 0)), ValueError, "psum"),
    "a dimension of a scalar": (lambda: lax.psum(3.0, 0), AxisError, "psum"),
    "a dimension to gather": (over_i(lambda v: lax.all_gather(v, ("i", 0))), UnboundAxis, ": 0"),
    "groups of a dimension": (
        over_i(lambda v: lax.psum(v, ("i", 0), axis_index_groups=[[0, 1], [2, 3]])), ArgumentError,
        r"psum takes axis_index_groups over named axes alone; got \('i', 0\)",
    ),
    "groups of several lengths": (
        over_i(lambda v: lax.all_gather(v, "i", axis_index_groups=[[0], [1, 2, 3]])),
        ArgumentError, r"one length, but for psum.* and pmin; got \[\[0\], \[1, 2, 3\]\]",
    ),
    "groups without an index": (
        over_i(lambda v: lax.pmean(v, "i", axis_index_groups=[[0, 1], [2]])), ArgumentError,
        "each index from 0 to 3 once",
    ),
    **{
        f"groups {groups}": (
            over_i(lambda v, g=groups: lax.psum(v, "i", axis_index_groups=g)), ArgumentTypeError,
            "lists of indices, whole numbers, such as",
        )
        for groups in ([[0.0, 1.0], [2.0, 3.0]], [0, 1, 2, 3], [[True, False], [2, 3]], 4, "ab")
    },
    "a source out of range": (over_i(lambda v: lax.pbroadcast(v, "i", 4)), ArgumentError,
                              "a source from 0 to 3; got 4"),
    "complex extremes": (over_i(lambda v: lax.pmin(lax.complex(v, v), "i")), DtypeError, "complex"),
    "ragged dtypes": (
        over_i(lambda v: lax.ragged_all_to_all(v, v > 1, *[np.zeros(4, int)] * 4, axis_name="i")),
        DtypeError, "have one dtype",
    ),
    "ragged rows": (
        over_i(lambda v: lax.ragged_all_to_all(v, v[:, :1], *[np.zeros(4, int)] * 4,
                                               axis_name="i")),
        ShapeError, r"rows alone; they are float32\[8,2\] and float32\[8,1\]",
    ),
    "ragged lengths": (
        over_i(lambda v: lax.ragged_all_to_all(v, v, *[np.zeros(6, int)] * 4, axis_name="i")),
        ShapeError, r"multiple of the size 4 .*input_offsets has the shape \(6,\)",
    ),
    "ragged sizes": (
        over_i(lambda v: lax.ragged_all_to_all(v, v, *[np.zeros(4)] * 4, axis_name="i")),
        DtypeError, "input_offsets of ragged_all_to_all holds integers",
    ),
}  # fmt: skip


@behaviour(108, "wrong axes, groups, dimensions and shapes are refused; the axes bound are listed")
@pytest.mark.parametrize("name", WRONG)
def test_wrong_uses(name: str) -> None:
    call, error, said = WRONG[name]
    with pytest.raises(error, match=said):
        call()
