"""`put_quickly`: warm puts of NumPy arrays on one device, in the compiled core."""

from __future__ import annotations

from typing import Any

from plugrt.bounded_cache import BoundedCache
from plugrt.compiled_core import core
from plugrt.execution.arguments import quick_avals
from plugrt.execution.array import Array
from plugrt.execution.sharding import SingleDeviceSharding
from plugrt.interface import Device
from plugrt.settings.declarations import config

_known: BoundedCache[Any, Any] = BoundedCache(4096)


def put_quickly(x: Any, device: Any) -> Array | None:
    """Returns a NumPy array on a device as `keep_put` knows it; None where there is more to do."""
    return None if core is None else core.put_array(_known, x, device)


def keep_put(x: Any, device: Any, made: Array) -> None:
    """Has `put_quickly` put arrays like ``x`` as this one was: ``made`` of it for ``device``."""
    if core is None or not (device is None or isinstance(device, Device)):
        return
    token, sharding = config.token(), made.sharding
    if token.guarded or type(sharding) is not SingleDeviceSharding or sharding.memory_kind:
        return
    avals = quick_avals((x,))
    compile_put = getattr(sharding.device.client, "compile_put", None)
    if avals is None or compile_put is None:
        return
    put = compile_put(x.shape, x.dtype, sharding.device, False)
    if put is not None:
        _known.keep((token, avals[0], device), (put, made._signature))
