"""`used_donations`: which donated arguments of a divided program give their memory to a result."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import prod

from plugrt.execution.arrays.arguments import ParameterType
from plugrt.execution.placement.placement import Launch
from plugrt.execution.placement.plan import Plan
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.interface import TensorType

_Size = tuple[int, str | None]
"""The bytes of an array's part on one device, and the kind of its memory."""


def used_donations(
    plan: Plan, launch: Launch, types: Sequence[ParameterType], outputs: Sequence[TensorType]
) -> tuple[int, ...]:
    """Returns the donated arguments that have parts of the same size as a result, one for each.

    The others stay with the caller, as in JAX: the compiler pairs the parameters that it may use
    with results by the bytes of their parts. The shardings are settled.
    """
    free: defaultdict[_Size, int] = defaultdict(int)
    for output, sharding in zip(outputs, launch.out_shardings, strict=True):
        free[_part(output, sharding)] += 1
    used = []
    for i in plan.donated:
        size = _part(TensorType(*types[i][:2]), launch.in_shardings[i])
        if free[size]:
            free[size] -= 1
            used.append(i)
    return tuple(used)


def _part(kind: TensorType, sharding: Sharding) -> _Size:
    return prod(sharding.shard_shape(kind.shape)) * kind.dtype.itemsize, sharding.memory_kind
