"""`device_put`, `device_get` and the transfers below them."""

from __future__ import annotations

import copyreg
import time
from typing import Any, TypeVar, overload

import numpy as np
import numpy.ma
import numpy.typing as npt

from plugrt import monitoring
from plugrt.argument_errors import require_flag
from plugrt.errors import InvalidArgument, NotAnArray
from plugrt.execution import tree
from plugrt.execution.array import Array, array_on, duplicate, new_array
from plugrt.execution.default_device import default_device
from plugrt.execution.host_data import host_array
from plugrt.execution.resharding import exchange, reshard
from plugrt.execution.sharded_transfer import gather, put_sharded
from plugrt.execution.sharding import Sharding, SingleDeviceSharding
from plugrt.execution.signature import intern_signature
from plugrt.execution.transfer_guard import check_transfer
from plugrt.interface import Device, HostBufferSemantics
from plugrt.monitoring.listeners import listening
from plugrt.settings.declarations import config
from plugrt.typing import ArrayLike, DeviceLike

T = TypeVar("T")
_COPY = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_ALIAS = HostBufferSemantics.IMMUTABLE_ZERO_COPY


@overload
def device_put(
    x: ArrayLike,
    device: DeviceLike | None = None,
    *,
    donate: bool = False,
    may_alias: bool | None = None,
) -> Array: ...
@overload
def device_put(
    x: Any,
    device: DeviceLike | None = None,
    *,
    donate: bool = False,
    may_alias: bool | None = None,
) -> Any: ...
def device_put(
    x: Any,
    device: Device | Sharding | None = None,
    *,
    donate: bool = False,
    may_alias: bool | None = None,
) -> Any:
    """Returns ``x`` (an array, a scalar, or a pytree of them) as `Array` on a device or sharding.

    With a ``device`` the result is committed to it; without one, arrays stay where they are and
    host data go to the default device, uncommitted, as in JAX. ``donate`` releases the source's
    memory; ``may_alias`` True lets a host array that never changes be used without a copy,
    False forces a copy. Traced arrays stay as they are: the arguments of the outermost call decide
    where a program runs. Raises `NotAnArray` with the path of what is not an array.

    >>> plugrt.device_put({"bias": 1.5}, plugrt.devices()[0])
    {'bias': Array(1.5, dtype=float32)}
    """
    if device is not None and not isinstance(device, Device | Sharding):
        raise InvalidArgument(
            f"device_put takes a device, a sharding or None; got {type(device).__name__} "
            f"{device!r}. plugrt.devices() lists the devices"
        )
    if donate is not False or may_alias is not None:
        require_flag("device_put", "donate", donate)
        require_flag("device_put", "may_alias", may_alias, optional=True)
    if isinstance(device, SingleDeviceSharding) and device.memory_kind is None:
        device = device.device
    if config.token().guarded:
        _check_puts(x, device)
    start = time.perf_counter() if listening else 0.0
    # An array by itself is the usual case.
    put_all = _put_host if type(x) is np.ndarray else _put_tree
    result = put_all(x, device, may_alias, donate)
    if start:
        seconds = time.perf_counter() - start
        monitoring.record_event_duration_secs(monitoring.DEVICE_PUT, seconds)
    return result


def _check_puts(x: Any, to: Device | Sharding | None) -> None:
    """Has the transfer guard look at what `device_put` is asked for."""
    there = SingleDeviceSharding(to) if isinstance(to, Device) else to
    for leaf in tree.flatten(x)[0]:
        if type(leaf) is Array:
            if there is not None and leaf.sharding != there:
                what = f"{leaf._signature.tensor_type}, from {leaf.sharding!r} to {there!r}"
                check_transfer("device_to_device", what, explicit=True)
        elif not isinstance(leaf, Array):
            what = f"{leaf!r:.40}, to {there or default_device()!r}"
            check_transfer("host_to_device", what, explicit=True)


def _put_tree(
    x: Any, device: Device | Sharding | None, may_alias: bool | None, donate: bool
) -> Any:
    leaves, spec = tree.flatten(x)
    try:
        results = [
            _put_array(leaf, device, donate, may_alias)
            if type(leaf) is Array
            else _put_host(leaf, device, may_alias)
            for leaf in leaves
        ]
    except NotAnArray:
        for path, leaf in tree.flatten_with_paths(x):  # the error with its path
            if not isinstance(leaf, Array):
                host_array(leaf, f"the value at {path}" if path else "the value")
        raise
    return tree.unflatten(spec, results)


def _put_host(
    x: Any, to: Device | Sharding | None, may_alias: bool | None, donate: bool = False
) -> Array:
    if type(x) is not np.ndarray and isinstance(x, Array):
        x._live()  # a tracer: where its program runs is decided by the call's arguments
        return x
    host = host_array(x)
    if isinstance(to, Sharding):
        return put_sharded(host, to)
    weak = to is None and type(x) in (bool, int, float, complex)
    semantics = _ALIAS if may_alias else _COPY
    return put(host, to or default_device(), to is not None, weak, semantics)


def _put_array(
    x: Array, to: Device | Sharding | None, donate: bool, may_alias: bool | None
) -> Array:
    held = x._held()
    if to is None or x.sharding == to:
        result = x
    elif isinstance(to, Sharding):
        result = reshard(x, to, share=may_alias is not False)
    else:
        result = move(x, to, True)
    if may_alias is False and result._shards is held:
        result = new_array(duplicate(x)._shards or (), result._signature)
    if donate and result is not x:
        # Not deleted, since the result may share buffers; unshared ones are freed here.
        x._mark_donated("device_put")
    return result


def put(
    host: npt.NDArray[Any],
    device: Device,
    committed: bool,
    weak: bool = False,
    semantics: HostBufferSemantics = _COPY,
) -> Array:
    """Returns a host array that `host_array` gave as an array on ``device``."""
    client = device.client
    shards = client.shards((client.buffer_from_host(host, device, None, semantics),))
    sharding = SingleDeviceSharding(device)
    return new_array(shards, intern_signature(host.shape, host.dtype, sharding, committed, weak))


def move(x: Array, device: Device, committed: bool) -> Array:
    """Returns ``x`` on ``device``: the same buffers if it is there, put together if it is in parts.

    Goes from device to device where the backends can do that, else through the host. Raises
    `NotAnArray` where parts of it are in other processes.
    """
    shards, here = x._live(), SingleDeviceSharding(device)
    if x.sharding is here:
        kept = intern_signature(x.shape, x.dtype, here, committed, x._signature.weak)
        return x if kept is x._signature else new_array(shards, kept)
    buffers = exchange(x, here)
    if buffers is None:
        return put(gather(x), device, committed, x._signature.weak, semantics=_ALIAS)
    return array_on(buffers[0], committed, x._signature.weak)


@overload
def device_get(x: Array) -> npt.NDArray[Any]: ...
@overload
def device_get(x: Any) -> Any: ...
def device_get(x: Any) -> Any:
    """Returns a pytree with every array in it as a NumPy array (read-only where not copied).

    All copies to the host are begun before the first is waited for. Other leaves stay as they are.

    Raises the error of a computation that failed to make one.

    >>> plugrt.device_get({"x": xp.asarray([1, 2])})
    {'x': array([1, 2], dtype=int32)}
    """
    if not config.token().guarded:
        return _get(x)
    for leaf in tree.flatten(x)[0]:
        if type(leaf) is Array:
            leaf._check_read(explicit=True)
    with config.override(transfer_guard_device_to_host="allow"):
        return _get(x)


def _get(x: Any) -> Any:
    leaves, spec = tree.flatten(x)
    for leaf in leaves:
        if type(leaf) is Array:
            leaf.copy_to_host_async()
    return tree.unflatten(
        spec, [np.asarray(leaf) if isinstance(leaf, Array) else leaf for leaf in leaves]
    )


def block_until_ready(x: T) -> T:
    """Waits until every array in a pytree is there, and returns the pytree.

    Raises the error of a computation that failed to make one. Other leaves are passed over.

    >>> plugrt.block_until_ready(xp.asarray([1, 2]))
    Array([1, 2], dtype=int32)
    """
    if type(x) is Array:
        return x.block_until_ready()  # type: ignore[attr-defined,no-any-return]
    for leaf in tree.flatten(x)[0]:
        if isinstance(leaf, Array):
            leaf.block_until_ready()
    return x


def _unpickle(host: npt.NDArray[Any]) -> Array:
    x: Array = device_put(host)
    return x


def _pickle(x: Array) -> tuple[Any, tuple[npt.NDArray[Any]]]:
    return _unpickle, (np.asarray(x),)


# Said here, since only here it is known how the contents get on a device again.
copyreg.pickle(Array, _pickle)
