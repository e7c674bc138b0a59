"""`replicate`: the sharding of whole arrays on the same devices."""

from __future__ import annotations

from plugrt.execution.shardings.gspmd_sharding import GSPMDSharding
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.shardings.positional_sharding import PositionalSharding
from plugrt.execution.shardings.sharding_base import Sharding, SingleDeviceSharding


def replicate(sharding: Sharding) -> Sharding:
    """Returns the sharding over the same devices in which each has the whole array."""
    if isinstance(sharding, NamedSharding):
        return NamedSharding(sharding.mesh, PartitionSpec())
    if isinstance(sharding, PositionalSharding):
        return sharding.replicate()
    if sharding.num_devices == 1:
        return SingleDeviceSharding(sharding.devices[0])
    return GSPMDSharding.get_replicated(sharding.devices)
