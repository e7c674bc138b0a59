"""Results of `pmap` are divided arrays, which `jit`, operators and indexing do not move.

Same as JAX: results of `pmap` are divided over a mesh of the mapped axis, also in `jit`, operators,
indexing, `device_put` and another `pmap`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
import plugrt.sharding
from plugrt.sharding import Mesh, NamedSharding, PartitionSpec, PmapSharding
from support.effort import WHOLE
from support.jax_oracle import jax

X = np.arange(128.0, dtype=np.float32).reshape(8, 8, 2)


class Side:
    """The functions of one library that make results of pmap, and other arrays."""

    def __init__(self, library: Any, devices: Any) -> None:
        self.m, self.devices, self.names = library, devices, library.sharding

    def mapped(self, name: Any, out_axes: Any, chosen: slice) -> Any:
        """Returns the result of a pmap over some devices."""
        devices = self.devices[chosen]
        function = self.m.pmap(
            lambda v: v + 1 if out_axes is not None else v * 0,
            axis_name=name, out_axes=out_axes, devices=devices,
        )  # fmt: skip
        return function(X[: len(devices)])

    def over(self, chosen: slice, *spec: Any) -> Any:
        """Returns a sharding over a mesh of some devices, with an axis "x"."""
        mesh = self.names.Mesh(np.array(self.devices[chosen]), ("x",))
        return self.names.NamedSharding(mesh, self.names.PartitionSpec(*spec))

    def others(self) -> list[Any]:
        """Returns host and device arrays to combine with a result."""
        one = self.names.SingleDeviceSharding(self.devices[3])
        where = [one, self.over(ALL, "x"), self.over(ALL, None, "x"), self.over(ALL),
                 self.over(REVERSED, "x"), self.over(FIRST, "x")]  # fmt: skip
        return [X, 2.0, self.m.device_put(X), *[self.m.device_put(X, s) for s in where]]


ALL, REVERSED, FIRST, LAST = slice(None), slice(None, None, -1), slice(4), slice(4, 8)
RESULTS = {
    f"{name} {axis} {chosen}": (name, axis, chosen)
    for name, axis, chosen in [
        (None, 0, ALL), ("i", 0, ALL), ("i", 1, ALL), ("i", 2, ALL), ("i", None, ALL),
        ("i", 0, REVERSED), (None, 0, FIRST), (None, 1, LAST),
    ]
}  # fmt: skip
USES: dict[str, Callable[[Side, Any], Any]] = {
    "itself": lambda s, r: r,
    "r + r": lambda s, r: r + r,
    "r * 2": lambda s, r: r * 2,
    "-r": lambda s, r: -r,
    "jit": lambda s, r: s.m.jit(lambda v: v * 3)(r),
    "jit of nothing": lambda s, r: s.m.jit(lambda v: v)(r),
    "jit of two": lambda s, r: s.m.jit(lambda v, w: v + w)(r, np.float32(1)),
    "donated": lambda s, r: s.m.jit(lambda v: v + 1, donate_argnums=0)(r),
    "sum": lambda s, r: r.sum(),
    "sum over 0": lambda s, r: r.sum(axis=0),
    "transposed": lambda s, r: r.T,
    "row": lambda s, r: r[1],
    "last": lambda s, r: r[..., -1],
    "rows": lambda s, r: r[1:3],
    "at": lambda s, r: r.at[0].set(5.0),
    "put": lambda s, r: s.m.device_put(r),
    "put on a device": lambda s, r: s.m.device_put(r, s.devices[2]),
    "put over a mesh": lambda s, r: s.m.device_put(r, s.over(ALL)),
    "put as it is": lambda s, r: s.m.device_put(X[: r.shape[0]] * 1, r.sharding),
    "in_shardings": lambda s, r: s.m.jit(lambda v: v + 1, in_shardings=r.sharding)(r),
    "out_shardings": lambda s, r: s.m.jit(lambda v: v + 1, out_shardings=r.sharding)(r),
}


SAMPLED = {
    (case, use) for i, case in enumerate(RESULTS) for j, use in enumerate(USES) if (i + j) % 2 == 0
}


def sides() -> tuple[Side, Side]:
    return Side(plugrt, plugrt.devices()), Side(jax, jax.devices("cpu"))


def outcome(call: Callable[[], Any]) -> Any:
    """Returns the sharding, commitment, shape and parts of an array, or "refused"."""
    try:
        found = call()
    except ValueError:
        return "refused"
    sharding, spec = found.sharding, None
    if type(sharding).__name__ == "NamedSharding":
        spec = sharding.mesh.axis_names, tuple(sharding.spec)
    parts = []
    for shard in found.addressable_shards:
        where = [s.indices(n) for s, n in zip(shard.index, found.shape, strict=True)]
        parts.append((shard.device.id, where, np.asarray(shard.data).tolist()))
    return type(sharding).__name__, spec, bool(found.committed), found.shape, sorted(parts)


@pytest.mark.parametrize("part", range(3 if WHOLE else 2))
@pytest.mark.parametrize("case", RESULTS)
def test_uses_of_results_are_as_in_jax(case: str, part: int) -> None:
    """Each use is compared for half of the results; the whole run compares all."""
    ours, theirs = sides()
    mine, other = ours.mapped(*RESULTS[case]), theirs.mapped(*RESULTS[case])

    def call(side: Side, result: Any, name: str) -> Any:
        if name == "donated":  # the call deletes it
            result = side.mapped(*RESULTS[case])
        return outcome(lambda: USES[name](side, result))

    chosen = [name for name in USES if WHOLE or (case, name) in SAMPLED]
    uses = chosen[part :: 3 if WHOLE else 2]
    assert [name for name in uses if call(ours, mine, name) != call(theirs, other, name)] == []


@pytest.mark.parametrize("case", [(None, 0, ALL), ("i", 1, ALL)])
def test_arrays_that_meet_results_are_as_in_jax(case: Any) -> None:
    ours, theirs = sides()
    mine, other = ours.mapped(*case), theirs.mapped(*case)
    meetings: list[Any] = [
        lambda s, r, y: r + y, lambda s, r, y: s.m.jit(lambda a, b: b - a)(r, y)
    ]  # fmt: skip
    for i, (w, v) in enumerate(zip(ours.others(), theirs.others(), strict=True)):
        for meet in meetings:
            found = outcome(lambda: meet(ours, mine, w))  # noqa: B023
            assert found == outcome(lambda: meet(theirs, other, v)), i  # noqa: B023


def test_pmap_sharding_is_the_named_sharding_of_unnamed_pmaps() -> None:
    ours, _ = sides()
    for axis, chosen in itertools.product((0, 1, None), (ALL, REVERSED, FIRST)):
        sharding = ours.mapped(None, axis, chosen).sharding
        assert type(sharding) is NamedSharding
        assert sharding == PmapSharding(plugrt.devices()[chosen], axis)
        assert PmapSharding(plugrt.devices()[chosen], axis) == sharding
        assert hash(sharding) == hash(PmapSharding(plugrt.devices()[chosen], axis))
    named = NamedSharding(Mesh(plugrt.devices(), "i"), PartitionSpec("i"))
    assert ours.mapped("i", 0, ALL).sharding == named
