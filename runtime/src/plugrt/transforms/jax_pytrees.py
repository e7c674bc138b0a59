"""Classes that are pytrees for JAX, made pytrees of plugrt's as they are met. Imports jax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from plugrt.errors import ArgumentTypeError, NotAnArray
from plugrt.execution.arrays.array import Array
from plugrt.execution.trees import tree
from plugrt.tracing.tracer import Tracer

_LEAVES = frozenset((Array, Tracer, np.ndarray, bool, int, float, complex))


def adopt_classes(value: Any) -> bool:
    """Registers with plugrt the classes in a pytree that only JAX knows as containers.

    Returns whether there were any. They stay registered, so that `plugrt.jit` takes them as well.
    """
    found = False
    while new := {type(leaf): leaf for leaf in tree.leaves(value) if _is_container(leaf)}:
        found = True
        for cls in new:
            tree.register_node(cls, _flatten, jax.tree_util.tree_unflatten)
    return found


def _is_container(leaf: Any) -> bool:
    return type(leaf) not in _LEAVES and not jax.tree_util.all_leaves([leaf])


def _flatten(value: Any) -> tuple[list[Any], Any]:
    """Returns the children of a container, and what JAX makes it of again."""
    return jax.tree_util.tree_flatten(value, is_leaf=lambda x: x is not value)


def refuse_jax_values(leaves: Sequence[Any], name: Callable[[int], str]) -> None:
    """Raises for arguments of JAX's that have no values, or none outside of JAX.

    ``name(i)`` is the i-th one's.
    """
    for i, leaf in enumerate(leaves):
        if type(leaf) in _LEAVES:
            continue
        if isinstance(leaf, jax.core.Tracer):
            raise ArgumentTypeError(
                f"{name(i)} is traced by JAX ({leaf!r:.60}): what from_jax returns runs on "
                "plugrt's backends, and no program of JAX's can have it within. Call the function "
                "itself there, and give from_jax the outermost one"
            )
        if isinstance(leaf, jax.Array) and jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            raise NotAnArray(
                f"{name(i)} has the dtype {leaf.dtype}, which only JAX has. Pass the words of a "
                "key, jax.random.key_data(key) or plugrt.random.PRNGKey(seed), and make it a key "
                "again within the function: jax.random.wrap_key_data"
            )
