"""A child of test_from_jax_as_jax.py: functions of JAX's through `from_jax`, and then by JAX.

Prints one line a case, and first whether plugrt's calls left JAX without a backend.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src import xla_bridge

import plugrt

SHAPE = (3, 4)
UNARY: list[Callable[[Any], Any]] = [
    jnp.sin, jnp.tanh, jnp.exp, jnp.negative, jax.nn.softplus, jax.nn.gelu, jax.nn.softmax,
    jnp.square, lambda x: jnp.cumsum(x, 1), lambda x: jnp.sort(x, 0), lambda x: x[::-1],
    lambda x: jnp.where(x > 0, x, 0.1 * x), lambda x: x.at[1].add(x[0]), jax.checkpoint(jnp.sin),
    lambda x: jnp.log1p(jnp.abs(x)), lambda x: x / (1 + jnp.linalg.norm(x)),
    lambda x: lax.cond(jnp.sum(x) > 0, jnp.cos, jnp.sin, x),
    lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * (i + 1), x),
    lambda x: lax.scan(lambda c, row: (c + row, jnp.tanh(c * row)), x[0], x)[1],
    lambda x: jax.jit(jnp.cos)(x), lambda x: jnp.take(x, jnp.array([2, 0, 1]), axis=0),
]  # fmt: skip
BINARY: list[Callable[[Any, Any], Any]] = [
    jnp.add, jnp.multiply, jnp.maximum, jnp.subtract, lambda x, y: x @ y.T @ x,
    lambda x, y: jnp.einsum("ij,ij->ij", x, y), lambda x, y: jnp.concatenate([x[:1], y[1:]]),
]  # fmt: skip


@jax.custom_vjp
def clipped(x: Any) -> Any:
    return jnp.clip(x, -1, 1)


clipped.defvjp(lambda x: (clipped(x), x), lambda x, g: (g * (jnp.abs(x) < 2),))


@jax.custom_jvp
def cubed(x: Any) -> Any:
    return x**3


cubed.defjvp(lambda primals, tangents: (cubed(*primals), 3 * primals[0] ** 2 * tangents[0]))


def compose(choice: random.Random) -> Callable[[Any, Any], Any]:
    """Returns a function of two arrays of `SHAPE`, made of several of those above."""
    steps = [choice.choice([*UNARY, clipped, cubed]) for _ in range(4)]
    joins = [choice.choice(BINARY) for _ in range(2)]

    def f(x: Any, y: Any) -> Any:
        for step in steps[:2]:
            x = step(x)
        x = joins[0](x, y)
        x = x / (1 + jnp.max(jnp.abs(x)))
        for step in steps[2:]:
            x = step(x)
        return joins[1](x, y)

    return f


def transform(f: Callable[[Any, Any], Any], choice: random.Random) -> tuple[str, Any]:
    """Returns a transformed function and the name of the transformation."""

    def loss(x: Any, y: Any) -> Any:
        return jnp.mean(f(x, y) ** 2)

    return choice.choice([
        ("value", f),
        ("jit", jax.jit(f)),
        ("grad", jax.grad(loss, argnums=(0, 1))),
        ("value_and_grad", jax.value_and_grad(loss)),
        ("vjp", lambda x, y: jax.vjp(f, x, y)[1](x)),
        ("vmap", jax.vmap(f, in_axes=(None, 0))),
        ("checkpoint", jax.grad(jax.checkpoint(loss))),
        ("grad of vmap", jax.grad(lambda x, y: jnp.sum(jax.vmap(loss, (None, 0))(x, y)))),
    ])  # fmt: skip


def noise(seed: Any, key: Any) -> Any:
    """Returns random numbers, from a key made within and from the words of one."""
    own = jax.random.key(seed)
    given = jax.random.wrap_key_data(key)
    first, second = jax.random.split(jax.random.fold_in(own, 7))
    return {
        "normal": jax.random.normal(first, SHAPE),
        "choice": jax.random.permutation(second, 10),
        "given": jax.random.uniform(given, (5,)),
        "key": jax.random.key_data(given),
    }


def cases(count: int, seed: int) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Yields name, function and arguments."""
    words = np.array([0, 42], np.uint32)
    yield "random", noise, (3, words)
    numbers = np.random.default_rng(seed)
    x, y = numbers.standard_normal((2, *SHAPE)).astype(np.float32)
    yield "jvp", lambda x, y: jax.jvp(cubed, (x,), (y,)), (x, y)
    yield "hessian", jax.hessian(lambda x: jnp.sum(jnp.sin(x) * x)), (x[0],)
    for number in range(count):
        choice = random.Random(f"{seed}.{number}")
        title, f = transform(compose(choice), choice)
        x, y = numbers.standard_normal((2, *SHAPE)).astype(np.float32)
        batch = numbers.standard_normal((2, *SHAPE)).astype(np.float32)
        yield f"{number} {title}", f, (x, batch if "vmap" in title else y)


def compare(ours: Any, theirs: Any) -> str:
    if jax.tree.structure(ours) != jax.tree.structure(theirs):
        return f"other structure: {jax.tree.structure(ours)}"
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return f"{a.dtype}{a.shape} for {b.dtype}{b.shape}"
        scale = 1e-4 * (1 + float(np.max(np.abs(b), initial=0)))
        if not np.allclose(a, b, rtol=1e-3, atol=scale):
            return f"differs by {np.max(np.abs(a - b))}"
    return "same"


def main(count: int, seed: int) -> None:
    """Compares ``count`` random functions and the functions of random numbers."""
    listed = [*cases(count, seed)]
    found = [plugrt.from_jax(f)(*args) for _, f, args in listed]
    print("backends", xla_bridge.backends_are_initialized())
    jax.config.update("jax_platforms", "cpu")  # for any platform that plugrt is set to use
    for (name, f, args), ours in zip(listed, found, strict=True):
        print(name, "|", compare(ours, jax.jit(f)(*args)))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
