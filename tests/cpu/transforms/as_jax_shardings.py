"""Random shardings of all classes, compared with JAX: parts, and equality.

`PositionalSharding`, which JAX removed, is compared with the `NamedSharding` that divides alike.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax._src import sharding_impls

import plugrt
from plugrt.sharding import GSPMDSharding, PositionalSharding

Pair = tuple[Any, Any]
"""A sharding of plugrt, and JAX's."""


def ask(question: Callable[..., Any], *values: Any) -> Any:
    """Returns the answer in a form that both libraries share; ``refused`` if it is an error."""
    try:
        answer = question(*values)
    except (plugrt.errors.ShapeError, ValueError, IndexError):
        return "refused"
    if isinstance(answer, dict):
        return {device.id: index for device, index in answer.items()}
    return answer


def named(choice: random.Random, longest: int) -> Pair:
    """Returns a random `NamedSharding`, whose spec has up to ``longest`` entries."""
    sizes = choice.choice([(2, 4), (4, 2), (8, 1), (1, 1)])
    ids = choice.sample(range(8), int(np.prod(sizes))) if choice.random() < 0.2 else None
    ids = ids or [*range(int(np.prod(sizes)))]
    axes: list[Any] = choice.choice([["x"], ["y"], ["x", "y"], [("x", "y")], [("y", "x")], []])
    spec = [*axes, *[None] * choice.randint(0, max(0, longest - len(axes)))]
    choice.shuffle(spec)
    made = []
    for package in (plugrt, jax):
        devices = package.devices("cpu" if package is jax else None)
        mesh = package.sharding.Mesh(
            np.reshape(np.array([devices[i] for i in ids], object), sizes), ("x", "y")
        )
        made.append(package.sharding.NamedSharding(mesh, package.sharding.PartitionSpec(*spec)))
    return made[0], made[1]


def in_a_class(choice: random.Random, ndim: int) -> Pair:
    """Returns a random sharding of a random class, for arrays of ``ndim`` dimensions."""
    ours, theirs = named(choice, ndim + 1)
    kind = choice.choice(["named", "named", "gspmd", "positional", "single"])
    if kind == "single":
        i = choice.randrange(2)
        one = plugrt.sharding.SingleDeviceSharding(plugrt.devices()[i])
        return one, jax.sharding.SingleDeviceSharding(jax.devices("cpu")[i])
    if kind == "named" or ask(ours.tiling, ndim) == "refused":
        return ours, theirs
    tiling = ours.tiling(ndim)
    if kind == "positional":
        return PositionalSharding.from_tiling(ours.devices, tiling), theirs
    text = theirs._to_xla_hlo_sharding(ndim)
    of_jax: Any = sharding_impls.GSPMDSharding
    return GSPMDSharding.from_tiling(ours.devices, tiling), of_jax(
        list(theirs.mesh.devices.flat), text
    )


def compare_shardings(seed: int = 0, count: int = 500) -> str:
    """Returns ``same``, or the first question with different answers."""
    choice, answers = random.Random(seed), Counter[str]()
    for _ in range(count):
        ndim = choice.randint(0, 3)
        (a, of_jax), (b, other) = in_a_class(choice, ndim), in_a_class(choice, ndim)
        shape = tuple(choice.choice([8, 16, 24, 3, 0]) for _ in range(ndim))
        for name in ("shard_shape", "devices_indices_map"):
            found, expected = (ask(getattr(x, name), shape) for x in (a, of_jax))
            if found != expected:
                return f"{name} of {a!r}, {shape}: {found}; JAX has {expected}"
        found = ask(a.is_equivalent_to, b, ndim)
        expected = ask(of_jax.is_equivalent_to, other, ndim)
        # JAX may refuse first: it computes the parts before it compares devices.
        if found != expected and not (expected == "refused" and found == (a == b)):
            return f"is_equivalent_to of {a!r}, {b!r}, {ndim}: {found}; JAX has {expected}"
        answers[f"{expected}, of {'one class' if type(a) is type(b) else 'two'}"] += 1
    few = len(answers) < 6 or min(answers.values()) < 10
    return f"too few of a kind: {answers}" if few else "same"
