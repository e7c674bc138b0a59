"""Shardings and devices of `jit`, and of inner functions, decide where it runs, as in JAX.

Same as JAX: `in_shardings`, `out_shardings` and `device=`, also of jitted functions within others:
devices, moves and errors.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import plugrt
import plugrt.sharding
from plugrt.errors import DeviceMismatch, StructureError
from support.effort import some_of
from support.jax_oracle import jax

# JAX deprecates `device=`, which is compared here.
pytestmark = pytest.mark.filterwarnings("ignore:backend and device argument on jit")

X = np.arange(16.0, dtype=np.float32).reshape(8, 2)


class Side:
    """The names of one library, and shardings over its devices."""

    def __init__(self, library: Any, constrain: Any, devices: Any) -> None:
        self.m, self.constrain, self.devices = library, constrain, devices
        names = library.sharding
        self.one = [names.SingleDeviceSharding(device) for device in devices]

        def named(ids: Any, shape: tuple[int, ...], axes: str, *spec: Any) -> Any:
            mesh = names.Mesh(np.array(devices)[list(ids)].reshape(shape), tuple(axes))
            return names.NamedSharding(mesh, names.PartitionSpec(*spec))

        self.shardings = {
            "device 0": self.one[0],
            "device 3": self.one[3],
            "mesh of device 3": named([3], (1,), "x"),
            "all": named(range(8), (8,), "x"),
            "all, divided": named(range(8), (8,), "x", "x"),
            "reversed": named(range(7, -1, -1), (8,), "x"),
            "reversed, divided": named(range(7, -1, -1), (8,), "x", "x"),
            "first": named(range(4), (4,), "x"),
            "first, divided": named(range(4), (4,), "x", "x"),
            "last": named(range(4, 8), (2, 2), "xy"),
            "last, divided by both": named(range(4, 8), (2, 2), "xy", ("x", "y")),
            "last, divided by one": named(range(4, 8), (2, 2), "xy", "x"),
        }
        self.all = self.shardings["all, divided"]

    def jit(self, function: Any = None, **options: Any) -> Any:
        # Each function is new, since refusals of JAX depend on its caches.
        return self.m.jit(function or (lambda v: v + 1), **options)

    def at(self, number: int) -> Any:
        """Returns an array that is committed to a device."""
        return self.m.device_put(X, self.devices[number])


def sides() -> tuple[Side, Side]:
    ours = Side(plugrt, plugrt.with_sharding_constraint, plugrt.devices())
    return ours, Side(jax, jax.lax.with_sharding_constraint, jax.devices("cpu"))


def outcome(call: Callable[[], Any]) -> Any:
    """Returns the parts, commitment and values of a call's result, or "refused"."""
    try:
        found = call()
    except ValueError:
        return "refused"
    parts = found.sharding.devices_indices_map(found.shape)
    where = {
        d.id: [s.indices(n) for s, n in zip(i, X.shape, strict=True)] for d, i in parts.items()
    }
    return where, bool(found.committed), np.asarray(found).tolist()


CALLS: dict[str, Callable[[Side], Any]] = {
    "device": lambda s: s.jit(s.jit(device=s.devices[3]))(X),
    "device in device": lambda s: s.jit(s.jit(device=s.devices[3]), device=s.devices[5])(X),
    "device in the same": lambda s: s.jit(s.jit(device=s.devices[3]), device=s.devices[3])(X),
    "arguments in device": lambda s: s.jit(s.jit(in_shardings=s.one[3]), device=s.devices[5])(X),
    "results in device": lambda s: s.jit(s.jit(out_shardings=s.one[3]), device=s.devices[5])(X),
    "device in arguments": lambda s: s.jit(s.jit(device=s.devices[3]), in_shardings=s.one[5])(X),
    "arguments in arguments": lambda s: s.jit(
        s.jit(in_shardings=s.one[3]), in_shardings=s.one[5]
    )(X),
    "two": lambda s: s.jit(
        lambda v: s.jit(device=s.devices[3])(v) + s.jit(device=s.devices[4])(v)
    )(X),
    "an array elsewhere": lambda s: s.jit(s.jit(device=s.devices[3]))(s.at(0)),
    "an array elsewhere, arguments within": lambda s: s.jit(s.jit(in_shardings=s.one[3]))(s.at(0)),
    "an array elsewhere, results": lambda s: s.jit(out_shardings=s.one[3])(s.at(0)),
    "an array elsewhere, both": lambda s: s.jit(in_shardings=s.one[3], out_shardings=s.one[3])(
        s.at(0)
    ),
    "an array elsewhere, outer device": lambda s: s.jit(device=s.devices[3])(s.at(0)),
    "a divided array, outer device": lambda s: s.jit(device=s.devices[3])(
        s.m.device_put(X, s.all)
    ),
    "a divided array, results": lambda s: s.jit(out_shardings=s.one[3])(s.m.device_put(X, s.all)),
    "arguments and results": lambda s: s.jit(in_shardings=s.one[3], out_shardings=s.one[4])(X),
    "mesh and device": lambda s: s.jit(in_shardings=s.all, out_shardings=s.one[3])(X),
    "constraint": lambda s: s.jit(lambda v: s.constrain(v, s.one[3]), device=s.devices[5])(X),
    "branch": lambda s: s.jit(
        lambda v: s.m.lax.cond(v[1, 0] > 0, s.jit(device=s.devices[3]), lambda w: w, v)
    )(X),
    "device_put": lambda s: s.jit(lambda v: s.m.device_put(v, s.one[3]))(X),
    "device_put of a result": lambda s: s.jit(lambda v: s.m.device_put(v + 1, s.one[3]) * 2)(X),
    "device_put to a device": lambda s: s.jit(lambda v: s.m.device_put(v, s.devices[3]))(X),
    "device_put to a mesh of one": lambda s: s.jit(
        lambda v: s.m.device_put(v, s.shardings["mesh of device 3"])
    )(X),
    "device_put elsewhere": lambda s: s.jit(lambda v: s.m.device_put(v, s.one[3]))(s.at(0)),
    "device_put to two": lambda s: s.jit(
        lambda v: s.m.device_put(v + 1, s.one[3]) + s.m.device_put(v, s.one[2])
    )(X),
    "device_put to another memory": lambda s: s.jit(
        lambda v: s.m.device_put(v, s.one[3].with_memory_kind("pinned_host"))
    )(X),
    "device_put of a divided array": lambda s: s.jit(lambda v: s.m.device_put(v + 1, s.one[3]))(
        s.m.device_put(X, s.all)
    ),
    "unused argument": lambda s: s.jit(
        lambda v, w: v + 1, in_shardings=(None, s.one[3])
    )(X, X),
    "unused argument elsewhere": lambda s: s.jit(
        lambda v, w: v + 1, in_shardings=(s.one[0], s.one[3])
    )(X, X),
    "unused argument over a mesh": lambda s: s.jit(
        lambda v, w: w + 1, in_shardings=(s.all, s.one[3])
    )(X, X),
    "kept argument elsewhere": lambda s: s.jit(
        lambda v, w: v + 1, in_shardings=(s.one[0], s.one[3]), keep_unused=True
    )(X, X),
    "keyword": lambda s: s.jit(lambda *, v: v, in_shardings=s.one[3])(v=X),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_devices_that_are_named_within_and_without(name: str) -> None:
    if "memory" in name and not plugrt.get_backend().platform_version.startswith("jaxlib"):
        pytest.skip("the library may move no results to memories")
    ours, theirs = sides()
    assert outcome(lambda: CALLS[name](ours)) == outcome(lambda: CALLS[name](theirs))


def test_prefixes_are_compared_before_the_function_is_traced() -> None:
    ours, _ = sides()
    f = ours.jit(lambda v: v.nowhere, in_shardings=(None, ours.one[3]))
    for call in (f, f.lower, ours.jit(lambda v: f(v))):
        with pytest.raises(StructureError, match="in_shardings"):
            call(X)
    g = ours.jit(
        lambda n, v: n.nowhere + v, in_shardings=(None, ours.one[3]), static_argnums=0
    )  # fmt: skip
    with pytest.raises(StructureError, match="that are not static"):
        g(2, X)


def test_in_shardings_move_arrays_as_in_jax() -> None:
    ours, theirs = sides()

    def call(side: Side, lies: str, asked: str) -> Any:
        x = side.m.device_put(X, side.shardings[lies])
        return outcome(lambda: side.jit(in_shardings=side.shardings[asked])(x))

    wrong = [
        pair
        for pair in some_of([*itertools.product(ours.shardings, repeat=2)], 12)
        if call(ours, *pair) != call(theirs, *pair)
    ]
    assert wrong == []


@pytest.mark.parametrize("name", ["plain", "committed", "device", "device 3", "arguments", "mesh"])
def test_compiled_programs_move_arrays_as_in_jax(name: str) -> None:
    ours, theirs = sides()

    def outcomes(side: Side) -> dict[str, Any]:
        function, x = {
            "plain": (side.jit(), X),
            "committed": (side.jit(), side.at(0)),
            "device": (side.jit(device=side.devices[0]), X),
            "device 3": (side.jit(device=side.devices[3]), side.at(0)),
            "arguments": (side.jit(in_shardings=side.one[3]), X),
            "mesh": (side.jit(in_shardings=side.all), X),
        }[name]
        compiled = function.lower(x).compile()
        arrays = {key: side.m.device_put(X, s) for key, s in side.shardings.items()}
        return {key: outcome(partial(compiled, y)) for key, y in arrays.items()}

    assert outcomes(ours) == outcomes(theirs)


def test_shardings_that_disagree_are_refused_when_devices_are_needed() -> None:
    ours, _ = sides()
    f = ours.jit(in_shardings=ours.one[3], out_shardings=ours.one[4])
    with pytest.raises(DeviceMismatch, match=r"in_shardings: .*\n  out_shardings: "):
        f(X)
    with pytest.raises(DeviceMismatch, match=r"in_shardings: .*\n  out_shardings: "):
        f.lower(X)


@pytest.mark.parametrize("name", ["isnan", "isfinite", "signbit", "imag", "ones_like", "isinf"])
def test_functions_that_use_their_argument_run_on_its_devices(name: str) -> None:
    """Same as JAX: which functions of integers, bools and floats use their argument in `jit`."""
    from plugrt import array_api

    found = []
    for m, of in ((plugrt, array_api), (jax, jax.numpy)):
        f = m.jit(getattr(of, name))
        arrays = [
            m.device_put(np.ones(3, dtype), m.devices()[3])
            for dtype in ("bool", "int32", "uint8", "float32")
        ]
        found.append([f(x).committed for x in arrays])
    assert found[0] == found[1]


@pytest.mark.parametrize("indices", [(0,), (2,)])
@pytest.mark.parametrize("shape", [(0,), (3,), (3, 0), (0, 2), (2, 3)])
def test_an_empty_take_is_placed_as_in_jax(
    shape: tuple[int, ...], indices: tuple[int, ...]
) -> None:
    from plugrt import array_api

    found = []
    for m, of in ((plugrt, array_api), (jax, jax.numpy)):
        take = m.jit(partial(of.take, axis=0))
        x = m.device_put(np.ones(shape, "f4"), m.devices()[3])
        try:
            result = take(x, np.zeros(indices, "i4"))
            found.append((result.committed, result.shape))
        except IndexError:
            found.append((None, ()))
    assert found[0] == found[1]


@pytest.mark.parametrize("placed", ["carry", "inputs", "none"])
def test_the_results_of_no_step_are_where_jax_has_them(placed: str) -> None:
    found = []
    for m in (plugrt, jax):
        there = m.devices()[3]
        x = m.device_put(np.ones((0, 2), "f4"), there if placed == "inputs" else None)
        c = m.device_put(np.ones(2, "f4"), there if placed == "carry" else None)
        scan = m.jit(partial(m.lax.scan, lambda c, v: (c + v, (v, v[0]))))
        mapped = m.jit(partial(m.lax.map, lambda v: v * 2))
        leaves = m.tree.leaves((scan(c, x), mapped(x)))
        found.append([(r.shape, r.committed, {d.id for d in r.devices()}) for r in leaves])
    assert found[0] == found[1]


def test_a_loop_of_no_step_without_inputs_has_its_carry() -> None:
    for m in (plugrt, jax):
        carry, stacked = m.jit(partial(m.lax.scan, lambda c, _: (c, None), xs=None, length=0))(3.0)
        assert (float(carry), stacked) == (3.0, None)
