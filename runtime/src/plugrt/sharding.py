"""Shardings: how an array is distributed, as `Array.sharding` returns and `device_put` takes.

`SingleDeviceSharding` is one device; `PmapSharding` is one slice on each of several devices, or
the whole on each of them.
"""

from plugrt.execution.sharding import PmapSharding, Sharding, SingleDeviceSharding

__all__ = ["PmapSharding", "Sharding", "SingleDeviceSharding"]
