"""`read_op_sharding`: what a compiler states of a result's parts, as a sharding."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from plugrt.errors import InvalidReply, Unimplemented
from plugrt.execution.mesh import Mesh
from plugrt.execution.named_sharding import NamedSharding
from plugrt.execution.partition_spec import PartitionSpec
from plugrt.interface import Device
from plugrt.protobuf import integers

_REPLICATED, _OTHER = 0, 3
_TYPE, _TILES, _DEVICES, _COPIES, _IOTA_SHAPE, _IOTA_ORDER = 1, 3, 4, 6, 9, 10


def read_op_sharding(proto: bytes, devices: Sequence[Device]) -> NamedSharding:
    """Returns the sharding that a serialised ``xla.OpSharding`` states, over these devices.

    It is over a mesh of its own, whose axes are called as JAX calls those of such a mesh. Raises
    `Unimplemented` for other kinds than tiles and replicated, `InvalidReply` for one that is not
    over the devices, and `ValueError` for what is no message.
    """
    [kind] = integers(proto, _TYPE)[-1:] or [_REPLICATED]  # protobuf leaves 0 out
    if kind == _REPLICATED:
        return NamedSharding(Mesh(np.array(devices), ("_axis_0",)), PartitionSpec())
    if kind != _OTHER:
        raise Unimplemented(f"a sharding of XLA's type {kind} is neither of tiles nor replicated")
    tiles, order = integers(proto, _TILES), integers(proto, _DEVICES) or _iota(proto)
    if sorted(order) != list(range(len(devices))) or math.prod(tiles) != len(devices):
        raise InvalidReply(
            f"a sharding of {tiles[:8]} tiles over the devices {order[:8]} was stated for a "
            f"program on {len(devices)}"
        )
    names = tuple(f"_axis_{i}" for i in range(len(tiles)))
    placed = np.array([devices[i] for i in order], dtype=object).reshape(tiles)
    divided = names[:-1] if integers(proto, _COPIES) else names
    return NamedSharding(Mesh(placed, names), PartitionSpec(*divided))


def _iota(proto: bytes) -> list[int]:
    """Returns the devices where they are 0, 1, 2, … as an array with its axes in another order."""
    shape, order = integers(proto, _IOTA_SHAPE), integers(proto, _IOTA_ORDER)
    if math.prod(shape) > 1 << 20 or sorted(order) != list(range(len(shape))):
        return []
    found: list[int] = np.arange(math.prod(shape)).reshape(shape).transpose(order).ravel().tolist()
    return found
