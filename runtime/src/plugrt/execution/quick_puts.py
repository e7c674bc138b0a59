"""`put_quickly`: warm puts of host values and arrays on one device, in the compiled core."""

from __future__ import annotations

from typing import Any

from plugrt.bounded_cache import BoundedCache
from plugrt.compiled_core import core
from plugrt.execution.arguments import Aval, HostAval, quick_avals
from plugrt.execution.array import Array
from plugrt.execution.sharding import Sharding, SingleDeviceSharding
from plugrt.execution.signature import Signature
from plugrt.interface import Device
from plugrt.settings.declarations import config

_known: BoundedCache[Any, Any] = BoundedCache(4096)


def put_quickly(x: Any, device: Any) -> Any:
    """Returns ``x`` on a device as `keep_put` knows it; None where there is more to do.

    That is a value, or a list, tuple or dict of values.
    """
    if core is None:
        return None
    cls = type(x)
    if cls is not list and cls is not tuple and cls is not dict:
        return core.put_quickly(_known, x, device)
    made = []
    for leaf in x.values() if cls is dict else x:
        put = core.put_quickly(_known, leaf, device)
        if put is None:
            return None
        made.append(put)
    return dict(zip(x, made, strict=True)) if cls is dict else cls(made)


def keep_put(x: Any, device: Any, made: Any) -> None:
    """Has `put_quickly` put what is like ``x`` as this was: ``made`` of it for ``device``."""
    if core is None or not (device is None or isinstance(device, Device)):
        return
    cls = type(x)
    if cls is dict:
        x, made = x.values(), [made[key] for key in x]
    elif cls is not list and cls is not tuple:
        x, made = (x,), (made,)
    token = config.token()
    if token.guarded:
        return
    for leaf, array in zip(x, made, strict=True):
        avals = quick_avals((leaf,)) if type(array) is Array else None
        if avals is not None and (token, avals[0], device) not in _known:
            put = _compile(leaf, avals[0], array)
            if put is not None:
                _known.keep((token, avals[0], device), put)


def _compile(x: Any, aval: Aval, made: Array) -> tuple[Any, Signature] | None:
    """Returns what puts such values, None for those that stay, and the signature of what is made.

    None where that is Python's to do.
    """
    signature = made._signature
    if made is x:
        return None, signature
    if not _is_on_one(made.sharding) or signature.layout is not None:
        return None
    device = made.sharding.devices[0]
    if isinstance(aval, HostAval):
        compile_put = getattr(device.client, "compile_put", None)
        put = compile_put and compile_put(aval.shape, made.dtype, device, aval.weak)
    else:
        put = compile_copy(aval, device)
    return None if put is None else (put, signature)


def compile_copy(aval: Signature, device: Device) -> Any:
    """Returns what copies such arrays, on one device of a client, to another; None for Python."""
    if not _is_on_one(aval.sharding) or aval.layout is not None:
        return None
    [source] = aval.sharding.devices
    client = device.client
    if source.client is not client or source is device:
        return None
    compiles = getattr(client, "compile_copy", None)
    if compiles is None or not client.capabilities.device_to_device_copy:
        return None
    return compiles(aval.shape, aval.dtype, device)


def _is_on_one(sharding: Sharding) -> bool:
    return type(sharding) is SingleDeviceSharding and sharding.memory_kind is None
