"""Moving data: host to device, device to device, device to host."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import numpy.ma
import numpy.typing as npt

from plugrt.config import config
from plugrt.errors import InvalidArgument, NotAnArray, UnsupportedDtype
from plugrt.execution import tree
from plugrt.execution.array import Array, array_of_shards, array_on, new_array
from plugrt.execution.placement import default_device
from plugrt.execution.sharding import Sharding, SingleDeviceSharding
from plugrt.execution.signature import signature_of
from plugrt.interface import Buffer, Device, HostBufferSemantics, Memory

_COPY = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_ALIAS = HostBufferSemantics.IMMUTABLE_ZERO_COPY
_KINDS = frozenset("biufc")
_NARROW = {
    "int64": np.dtype(np.int32),
    "uint64": np.dtype(np.uint32),
    "float64": np.dtype(np.float32),
    "complex128": np.dtype(np.complex64),
}


def device_put(
    x: Any,
    device: Device | Sharding | None = None,
    *,
    donate: bool = False,
    may_alias: bool | None = None,
) -> Any:
    """Returns ``x`` (an array, a scalar, or a pytree of them) as `Array` on a device or sharding.

    With a ``device`` the result is committed to it; without one, arrays stay where they are and
    host data go to the default device, uncommitted, as in JAX. ``donate`` gives the source's
    memory up; ``may_alias`` True lets a host array that never changes be used without a copy,
    False forces a copy. Raises `NotAnArray` with the path of what is not an array.
    """
    leaves, spec = tree.flatten(x)
    if device is not None and not isinstance(device, Device | Sharding):
        raise InvalidArgument(
            f"device_put takes a device, a sharding or None; got {type(device).__name__} "
            f"{device!r}. plugrt.devices() lists the devices"
        )
    return tree.unflatten(spec, [_put(leaf, device, donate, may_alias) for leaf in leaves])


def _put(x: Any, to: Device | Sharding | None, donate: bool, may_alias: bool | None) -> Array:
    if isinstance(to, SingleDeviceSharding) and to.memory_kind is None:
        to = to.device
    if type(x) is Array:
        if to is None:
            return duplicate(x) if may_alias is False else x
        if isinstance(to, Sharding):
            result = x if x.sharding == to else put_sharded(np.asarray(x), to)
        else:
            result = _moved(x, to, may_alias is False)
        if donate and result is not x and result.sharding != x.sharding:
            x.delete()
        return result
    weak = type(x) in (bool, int, float, complex)
    host = host_array(x)
    if isinstance(to, Sharding):
        return put_sharded(host, to)
    semantics = _ALIAS if may_alias else _COPY
    return put(host, to or default_device(), to is not None, weak and to is None, semantics)


def put(
    host: npt.NDArray[Any],
    device: Device,
    committed: bool,
    weak: bool = False,
    semantics: HostBufferSemantics = _COPY,
) -> Array:
    """Returns a host array that `host_array` gave as an array on ``device``."""
    buffer = device.client.buffer_from_host(host, device, None, semantics)
    sharding = SingleDeviceSharding(device)
    return new_array((buffer,), signature_of(host.shape, host.dtype, sharding, committed, weak))


def put_sharded(host: npt.NDArray[Any], sharding: Sharding) -> Array:
    """Returns a host array with its parts on the devices of a sharding."""
    where = sharding.devices_indices_map(host.shape)
    buffers: list[Buffer] = []
    for device in sharding.addressable_devices:
        memory = device.memory(sharding.memory_kind) if sharding.memory_kind else None
        buffers.append(device.client.buffer_from_host(host[where[device]], device, memory))
    return array_of_shards(host.shape, host.dtype, sharding, buffers)


def move(x: Array, device: Device, committed: bool) -> Array:
    """Returns ``x`` on ``device``: the same buffers if it is there, gathered if it is spread."""
    shards = x._live()
    if x.sharding is SingleDeviceSharding(device):
        kept = signature_of(x.shape, x.dtype, x.sharding, committed, x._signature.weak)
        return x if kept is x._signature else new_array(shards, kept)
    if len(shards) == 1:
        return array_on(copy_buffer(shards[0], device), committed, x._signature.weak)
    return put(np.asarray(x), device, committed)


def _moved(x: Array, device: Device, copy: bool) -> Array:
    if copy:
        return put(np.array(x), device, True)
    return move(x, device, True)


def duplicate(x: Array) -> Array:
    """Returns a copy of ``x`` where it is: deleting or donating the one leaves the other alone."""
    copies = [copy_buffer(shard, shard.device, shard.memory) for shard in x._live()]
    return new_array(copies, x._signature)


def copy_buffer(buffer: Buffer, device: Device, memory: Memory | None = None) -> Buffer:
    """Returns a copy of a buffer on another device, directly where the backends can do that."""
    client = device.client
    if buffer.device.client is client and client.capabilities.device_to_device_copy:
        return buffer.copy_to_memory(memory) if memory else buffer.copy_to_device(device)
    return client.buffer_from_host(buffer.to_host(), device, memory)


def device_get(x: Any) -> Any:
    """Returns a pytree with every array in it as a NumPy array (read-only where not copied).

    All copies to the host are begun before the first is waited for. Other leaves stay as they are.
    """
    leaves, spec = tree.flatten(x)
    for leaf in leaves:
        if type(leaf) is Array:
            leaf.copy_to_host_async()
    return tree.unflatten(
        spec, [np.asarray(leaf) if type(leaf) is Array else leaf for leaf in leaves]
    )


def block_until_ready(x: Any) -> Any:
    """Waits until every array in a pytree is there, and returns the pytree.

    Raises the error of a computation that failed to make one. Other leaves are passed over.
    """
    for leaf in tree.flatten(x)[0]:
        if isinstance(leaf, Array):
            leaf.block_until_ready()
    return x


def host_array(x: Any, name: str = "the value") -> npt.NDArray[Any]:
    """Returns NumPy data in a form that a backend takes: native byte order, a numeric dtype.

    Python scalars get the default dtype of their kind. Raises `NotAnArray` or `UnsupportedDtype`
    with ``name`` in the message.
    """
    kind = type(x)
    if kind in (bool, int, float, complex):
        return np.asarray(x, scalar_dtype(x))
    if isinstance(x, np.ma.MaskedArray):
        raise NotAnArray(
            f"{name} is a masked array, and a mask cannot be kept on a device; pass .filled(value) "
            "or the data and the mask as two arrays"
        )
    if not isinstance(x, np.ndarray | np.generic):
        raise NotAnArray(
            f"{name} is {_kind_of(x)}, which is not an array; pass NumPy arrays, plugrt arrays, "
            "Python or NumPy scalars, or pytrees of them"
        )
    host = np.asarray(x)
    check_dtype(host.dtype, name)
    if not host.dtype.isnative:
        host = host.astype(host.dtype.newbyteorder("="))
    if config.enable_x64 is False and host.dtype.name in _NARROW:
        _warn_narrowed()
        host = host.astype(_NARROW[host.dtype.name])
    return host


def check_dtype(dtype: np.dtype[Any], name: str) -> None:
    """Raises `UnsupportedDtype` unless arrays of this dtype can live on a device."""
    if dtype.kind in _KINDS or (dtype.kind == "V" and dtype.names is None and dtype.isbuiltin == 2):
        return
    what = "structured dtype" if dtype.names else "dtype"
    raise UnsupportedDtype(
        f"{name} has the {what} {dtype}, which devices do not have; arrays hold booleans, "
        "integers, floats (also ml_dtypes') and complex numbers"
    )


def scalar_dtype(x: bool | int | float | complex) -> np.dtype[Any]:
    """Returns the dtype that a Python scalar has when it meets no array."""
    wide = config.enable_x64 is True
    if isinstance(x, bool):
        return np.dtype(np.bool_)
    if isinstance(x, int):
        for dtype in (np.int64,) if wide else (np.int32, np.int64):
            info = np.iinfo(dtype)
            if info.min <= x <= info.max:
                return np.dtype(dtype)
        if 0 <= x <= np.iinfo(np.uint64).max:
            return np.dtype(np.uint64)
        raise OverflowError(f"the Python integer {x} does not fit 64 bits")
    if isinstance(x, float):
        return np.dtype(np.float64 if wide else np.float32)
    return np.dtype(np.complex128 if wide else np.complex64)


def _kind_of(x: Any) -> str:
    text = repr(x)
    if len(text) > 60:
        text = text[:57] + "..."
    return f"{text} of type {type(x).__module__}.{type(x).__qualname__}".replace("builtins.", "")


@cache
def _warn_narrowed() -> None:
    warnings.warn(
        "64-bit data are narrowed to 32 bits because JAX_ENABLE_X64 is 0; unset it to keep them",
        UserWarning,
        stacklevel=4,
    )
