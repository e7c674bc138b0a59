"""`check_constraint`: what a sharding within shard_map cannot say."""

from __future__ import annotations

from plugrt.errors import InvalidArgument
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.tracing.trace import Trace


def check_constraint(trace: Trace, sharding: Sharding, what: str) -> None:
    """Raises `InvalidArgument` for a constraint that the surrounding shard_map contradicts.

    A value there is the part of one device along the mapped axes: the compiler can divide it over
    the others, whose names are those of that mesh alone.
    """
    mesh = trace.mesh
    if mesh is None or not trace.axes or sharding.num_devices == 1:
        return
    around, free = [*trace.axes], [n for n in mesh.axis_names if n not in trace.axes]
    cure = f"name {free} of it, which the compiler divides over" if free else "leave it out"
    if isinstance(sharding, NamedSharding) and sharding.mesh.shape == mesh.shape:
        taken = [name for name in sharding.spec.axis_names if name in trace.axes]
        if taken:
            raise InvalidArgument(
                f"{what} with {sharding!r} within shard_map over {around}: a value there is one "
                f"device's part along {taken[0]!r}; {cure}"
            )
    elif not sharding.is_fully_replicated:
        raise InvalidArgument(
            f"{what} with {sharding!r} within shard_map over {around} of {mesh!r}: it is not over "
            f"that mesh; {cure}"
        )
