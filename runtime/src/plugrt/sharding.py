"""Shardings: how an array is distributed, as `Array.sharding` returns and `device_put` takes.

`SingleDeviceSharding` is one device; `NamedSharding` divides dimensions over the named axes of a
`Mesh` of devices, as a `PartitionSpec` says; `PmapSharding` is one slice on each of several
devices, or the whole on each of them.
"""

from plugrt.execution.mesh import AbstractMesh, Mesh
from plugrt.execution.named_sharding import NamedSharding
from plugrt.execution.partition_spec import PartitionSpec
from plugrt.execution.sharding import PmapSharding, Sharding, SingleDeviceSharding

__all__ = [
    "AbstractMesh",
    "Mesh",
    "NamedSharding",
    "PartitionSpec",
    "PmapSharding",
    "Sharding",
    "SingleDeviceSharding",
]
