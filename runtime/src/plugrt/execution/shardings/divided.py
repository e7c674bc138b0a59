"""`is_divided`, `replicate`: shardings that computations follow to several devices."""

from __future__ import annotations

from plugrt.execution.shardings.gspmd_sharding import GSPMDSharding
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.shardings.positional_sharding import PositionalSharding
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.execution.shardings.tiled_sharding import TiledSharding


def is_divided(sharding: Sharding) -> bool:
    """Whether computations follow an array with it to several devices."""
    return isinstance(sharding, TiledSharding) and sharding.num_devices > 1


def replicate(sharding: Sharding) -> Sharding:
    """Returns the sharding over the same devices in which each has the whole array."""
    if isinstance(sharding, NamedSharding):
        return NamedSharding(sharding.mesh, PartitionSpec())
    if isinstance(sharding, PositionalSharding):
        return sharding.replicate()
    return GSPMDSharding.get_replicated(sharding.devices)
