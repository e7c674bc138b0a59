"""`put_quickly`: warm puts of host values and arrays on one device, in the compiled core."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.base.bounded_cache import BoundedCache
from plugrt.execution.arrays.arguments import quick_avals
from plugrt.execution.arrays.array import Array, launch_form
from plugrt.execution.arrays.aval import ArrayAval, Aval, is_placed
from plugrt.execution.arrays.casting import cast
from plugrt.interface import Client, Device, Shards
from plugrt.native.known_dtypes import buffer_type
from plugrt.native.native_core import core
from plugrt.settings.declarations import config

_known: BoundedCache[Any, Any] = BoundedCache(4096)
_in_core: BoundedCache[Any, Any] = BoundedCache(4096)
"""The classes that the core puts itself; other host values of a pytree are put in one call."""


def put_quickly(x: Any, device: object) -> Any:
    """Puts ``x`` on a device, if `keep_put` has kept a put for it; else returns None.

    ``x`` may be a value, or a list, tuple or dict of values.
    """
    if core is None:
        return None
    cls = type(x)
    if cls is not list and cls is not tuple and cls is not dict:
        return core.put_quickly(_known, x, device)
    made = []
    for leaf in x.values() if cls is dict else x:
        put = core.put_quickly(_in_core, leaf, device)
        if put is None:
            return None
        made.append(put)
    return dict(zip(x, made, strict=True)) if cls is dict else cls(made)


def keep_put(x: Any, device: object, made: Any) -> None:
    """Keeps a put of values like ``x`` for `put_quickly`; ``made`` is the array on ``device``."""
    if core is None or not (device is None or isinstance(device, Device)):
        return
    cls, token = type(x), config.token()
    if token.guarded:
        return
    if cls is dict:
        x, made = x.values(), [made[key] for key in x]
    elif cls is not list and cls is not tuple:
        x, made = (x,), (made,)
    for leaf, array in zip(x, made, strict=True):
        avals = quick_avals((leaf,)) if type(array) is Array else None
        if avals is None or (key := (token, avals[0], device)) in _known:
            continue
        stays = array is leaf
        put = None if stays else _compile(avals[0], array)
        if stays or put is not None:
            found = put, array._aval
            _known.keep(key, found)
            if stays or type(put) in (core.Put, core.Copy):
                _in_core.keep(key, found)


def _compile(aval: Aval, made: Array) -> Any:
    """Returns the core's put of such values; None if they need more than that."""
    device = made.sharding.plain_device
    if device is None or made._aval.layout is not None:
        return None
    if is_placed(aval):
        return compile_move(aval, device)
    client, dtype = device.client, made.dtype
    compile_put = getattr(client, "compile_put", None)
    put = compile_put and compile_put(aval.shape, dtype, device, aval.weak)
    if put is not None:
        return put

    compile_function = getattr(client, "compile_function_put", None)
    put_host = compile_function and compile_function(aval.shape, dtype, device)
    if put_host is None:
        put_host = partial(_put_one, client, device)
    return lambda x: put_host(x if type(x) is np.ndarray else cast(x, dtype))


def _put_one(client: Client, device: Device, host: npt.NDArray[Any]) -> Shards:
    [shards] = client.shards_from_host((host,), device)
    return shards


def compile_move(aval: ArrayAval, device: Device) -> Any:
    """Returns a function that copies such arrays to another device of their client.

    It is a `Copy` of the core, or a function of the array. None if a copy is not enough.
    """
    if not _is_copied_within_client(aval, device):
        return None
    client, buffers = device.client, buffer_type(aval.shape, aval.dtype)
    compiles = getattr(client, "compile_copy", None)
    copy = compiles and compiles(*buffers, device)
    if copy is not None:
        return copy
    compiles = getattr(client, "compile_function_copy", None)
    copy_held = compiles and compiles(*buffers, device)
    if copy_held is not None:
        return lambda x: copy_held(x._held())
    return lambda x: launch_form(client.shards((x._live()[0].copy_to_device(device),)))


def _is_copied_within_client(aval: ArrayAval, device: Device) -> bool:
    """Whether such arrays, each on one device, are copied to another of the same client."""
    source = aval.sharding.plain_device
    if source is None or aval.layout is not None:
        return False
    client = device.client
    return (
        source.client is client
        and source is not device
        and client.capabilities.device_to_device_copy
    )
