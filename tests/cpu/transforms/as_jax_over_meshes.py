"""The child of test_from_jax_over_meshes.py: runs JAX's functions over a mesh on plugrt and JAX.

plugrt gets them over a mesh without devices, JAX over its own. The first line shows whether the
calls of plugrt started a backend of JAX, the last whether shardings equal JAX's. Between them each
case has a line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src import xla_bridge
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import plugrt
from cpu.transforms.as_jax_shardings import compare_shardings
from support.as_jax import compare

SIZES, NAMES, TYPES = (2, 4), ("x", "y"), (AxisType.Auto,) * 2
A = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)


def shardings_of_jit(mesh: Any) -> Any:
    def over(*spec: Any) -> NamedSharding:
        return NamedSharding(mesh, P(*spec))

    return jax.jit(
        lambda a, b: {"z": a @ b, "b": jnp.tanh(b), "a": a.sum()},
        in_shardings=(over("x"), over(None, ("y", "x"))),
        out_shardings={"z": over("y"), "b": over(None, "x"), "a": over()},
    )


def constraint(mesh: Any) -> Any:
    def f(a: Any, b: Any) -> Any:
        return lax.with_sharding_constraint(jnp.sin(a) * b, NamedSharding(mesh, P("y", "x")))

    return f


def left_to_the_compiler(mesh: Any) -> Any:
    spec = NamedSharding(mesh, P("y", P.UNCONSTRAINED))

    def loss(a: Any, b: Any) -> Any:
        return jnp.sum(lax.with_sharding_constraint(a @ b, spec) ** 2)

    return jax.value_and_grad(loss)


def mapped(mesh: Any) -> Any:
    def f(a: Any, b: Any) -> Any:
        i = lax.axis_index("x")
        return lax.psum(a * b, "x"), lax.all_gather(a[0] + i, "y", tiled=True)

    return jax.shard_map(
        f, mesh=mesh, in_specs=(P("x", "y"), P("x", "y")), out_specs=(P(None, "y"), P("x")),
        check_vma=False,
    )  # fmt: skip


def gradient_of_mapped(mesh: Any) -> Any:
    inner = jax.shard_map(
        lambda a, b: lax.psum(jnp.sin(a) @ b, "y"),
        mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=P("x"),
    )  # fmt: skip
    return jax.grad(lambda a, b: jnp.sum(inner(a, b) ** 2), argnums=(0, 1))


def over_one_axis(mesh: Any) -> Any:
    return jax.shard_map(
        lambda a, b: lax.ppermute(a, "x", [(0, 1), (1, 0)]) + b,
        mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"), axis_names={"x"},
    )  # fmt: skip


def in_a_loop(mesh: Any) -> Any:
    where = NamedSharding(mesh, P("x"))
    step = jax.jit(lambda c, b: lax.with_sharding_constraint(jnp.tanh(c @ b), where))
    return lambda a, b: lax.scan(lambda c, _: (step(c, b), c.sum()), a, None, length=3)


def without_uses(mesh: Any) -> Any:
    rows = NamedSharding(mesh, P("x"))
    doubled = jax.shard_map(lambda a: a * 2, mesh=mesh, in_specs=P("x"), out_specs=P("x"))

    def f(a: Any, b: Any) -> Any:
        unused = lax.with_sharding_constraint(a, rows), doubled(a), jax.device_put(a, rows)
        return (*unused, a @ b)[3]

    return f


def one_use_of_two(mesh: Any) -> Any:
    columns = NamedSharding(mesh, P(None, "y"))

    def f(a: Any, b: Any) -> Any:
        return [
            (lax.with_sharding_constraint(c, NamedSharding(mesh, P("x"))), c)[1]
            for c in (a, lax.with_sharding_constraint(b, columns))
        ]

    return f


def put(mesh: Any) -> Any:
    return lambda a, b: jax.device_put(a, NamedSharding(mesh, P("x"))) + b


CASES: list[Callable[[Any], Any]] = [
    shardings_of_jit, constraint, left_to_the_compiler, mapped, gradient_of_mapped, over_one_axis,
    in_a_loop, without_uses, one_use_of_two, put,
]  # fmt: skip


def specs(result: Any) -> list[tuple[Any, ...]]:
    """Returns each array's spec and number of devices, in a form that both libraries share."""
    found = []
    for x in jax.tree.leaves(result):
        spec = [*getattr(x.sharding, "spec", ())]
        while spec and spec[-1] is None:
            spec.pop()
        found.append((*spec, len(x.sharding.device_set)))
    return found


def main() -> None:
    """Compares values, and the division of results if the backend divides as XLA does."""
    ours = [plugrt.from_jax(make(AbstractMesh(SIZES, NAMES, TYPES)))(A, A.T) for make in CASES]
    print("backends", xla_bridge.backends_are_initialized())
    jax.config.update("jax_platforms", "cpu")  # the environment may name plugrt's platform
    jax.config.update("jax_num_cpu_devices", 8)
    mesh = Mesh(np.reshape(jax.devices(), SIZES), NAMES, axis_types=TYPES)
    chooses = plugrt.get_backend().platform != "numpy"
    for make, found in zip(CASES, ours, strict=True):
        expected = jax.jit(make(mesh))(A, A.T)
        said = compare(found, expected)
        if said == "same" and (chooses or make is shardings_of_jit):
            said = "same" if specs(found) == specs(expected) else f"divided as {specs(found)}"
        print(make.__name__, "|", said)
    print("shardings |", compare_shardings())


if __name__ == "__main__":
    main()
