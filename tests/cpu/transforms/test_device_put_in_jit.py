"""`device_put` within a traced function, beside JAX.

Same as JAX: `device_put` of a host value to a sharding or a memory, within `jit`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import plugrt
from plugrt.errors import DeviceMismatch, NotAnArray, ShapeError

X = np.arange(8, dtype=np.float32)
VALUES: dict[str, Callable[[Any], Any]] = {
    "host": lambda _: X,
    "captured": lambda package: package.device_put(X),
    "captured on another device": lambda package: package.device_put(X, package.devices()[3]),
    "in a dict": lambda _: {"a": X},
    "number": lambda _: 2.0,
    "NumPy's number": lambda _: np.float32(2),
}


def meshes(package: Any) -> tuple[Any, Any]:
    """Returns shardings over eight devices: one that divides, and one that replicates."""
    of = package.sharding
    mesh = of.Mesh(np.array(package.devices()[:8], object), ("x",))
    return tuple(of.NamedSharding(mesh, of.PartitionSpec(*axes)) for axes in (("x",), ()))


def targets(package: Any) -> dict[str, Any]:
    rows, whole = meshes(package)
    kind = plugrt.devices()[0].default_memory().kind
    other = next(
        (m.kind for m in plugrt.devices()[0].addressable_memories() if m.kind != kind), kind
    )
    return {
        "rows": rows,
        "whole": whole,
        "one": package.sharding.SingleDeviceSharding(package.devices()[3]),
        "a memory": whole.with_memory_kind(other),
        "a device": package.devices()[3],
    }


def placed(x: Any) -> tuple[Any, ...]:
    """Returns the placement of an array without its parts, which JAX's compiler chooses freely."""
    ids = sorted(device.id for device in x.sharding.device_set)
    return ids, x.sharding.memory_kind or plugrt.devices()[0].default_memory().kind, x.weak_type


CASES = [
    (value, target)
    for value in VALUES
    for target in ("rows", "whole", "one", "a memory", "a device")
    if not (target == "rows" and "number" in value)
]


@pytest.mark.parametrize(("value", "target"), CASES)
def test_it_places_the_program_as_in_jax(value: str, target: str) -> None:
    if target == "a memory" and not plugrt.get_backend().platform_version.startswith("jaxlib"):
        pytest.skip("the library may not have the memories of JAX's CPU")
    ends = []
    for package in (plugrt, jax):
        put, where = VALUES[value](package), targets(package)[target]

        def alone(package: Any = package, put: Any = put, where: Any = where) -> Any:
            return package.device_put(put, where)

        def used(a: Any, package: Any = package, put: Any = put, where: Any = where) -> Any:
            [leaf] = package.tree.leaves(package.device_put(put, where))
            # JAX refuses to add arrays in two memories.
            return a if target == "a memory" else leaf + a

        [first] = package.tree.leaves(package.jit(alone)())
        second = package.jit(used)(X)
        ends.append((*placed(first), *placed(second), np.asarray(first).tolist(),
                     np.asarray(second).tolist()))  # fmt: skip
    assert ends[0] == ends[1]


def test_devices_that_contradict_are_refused() -> None:
    rows, _ = meshes(plugrt)
    there = plugrt.device_put(np.float32(1), plugrt.devices()[3])
    with pytest.raises(DeviceMismatch, match="device_put, called at"):
        plugrt.jit(lambda a: plugrt.device_put(X, rows) + a)(there)
    one = plugrt.sharding.SingleDeviceSharding(plugrt.devices()[2])
    with pytest.raises(DeviceMismatch, match="device_put, called at"):
        plugrt.jit(lambda: plugrt.device_put(X, rows), out_shardings=one)()


def test_a_partition_spec_is_over_the_mesh_in_the_context() -> None:
    rows, _ = meshes(plugrt)
    with plugrt.sharding.use_mesh(rows.mesh):
        made = plugrt.jit(lambda: plugrt.device_put(X, plugrt.sharding.PartitionSpec("x")))()
    assert made.sharding == rows


def test_within_loops_and_inner_functions() -> None:
    rows, _ = meshes(plugrt)
    inner = plugrt.jit(lambda c: c + plugrt.device_put(X, rows))
    for body in (lambda _, c: c + plugrt.device_put(X, rows), lambda _, c: inner(c)):
        made = plugrt.jit(lambda v, body=body: plugrt.lax.fori_loop(0, 3, body, v))(X)
        assert len(made.sharding.device_set) == 8
        assert np.array_equal(made, 4 * X)


def test_values_that_cannot_be_put_are_refused_by_their_path() -> None:
    rows, _ = meshes(plugrt)
    with pytest.raises(NotAnArray, match=r"\['k'\]"):
        plugrt.jit(lambda: plugrt.device_put({"k": object()}, rows))()
    with pytest.raises(ShapeError, match="cannot be divided by 8"):
        plugrt.jit(lambda: plugrt.device_put(np.ones(3), rows))()
