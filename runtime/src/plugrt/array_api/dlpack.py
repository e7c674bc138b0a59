"""`from_dlpack`: arrays that share memory with other libraries' arrays."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from plugrt.argument_errors import with_argument_errors
from plugrt.errors import ArgumentError, InvalidArgument, NotAnArray
from plugrt.execution.array import Array, duplicate
from plugrt.execution.array_making import array_on
from plugrt.execution.default_device import default_device
from plugrt.execution.sharding import SingleDeviceSharding
from plugrt.execution.transfer import device_put
from plugrt.interface import Device
from plugrt.tracing.tracer import Tracer
from plugrt.typing import DeviceLike, SupportsDLPack

_CPU = 1  # DLPack's kDLCPU


@with_argument_errors
def from_dlpack(
    x: SupportsDLPack, /, *, device: DeviceLike | None = None, copy: bool | None = None
) -> Array:
    """Returns the data of an object with ``__dlpack__``, sharing its memory where possible.

    Data in host memory go to ``device``, else to the default device (the standard would say: to a
    CPU); data elsewhere stay on their device unless ``device`` is given. ``copy`` as in `asarray`.
    Writing to shared memory is not defined: arrays are taken not to change. Shape and dtype stay.
    Raises `NotAnArray` for objects without the protocol, `ArgumentError` where ``copy`` is False
    and a copy is needed, `InvalidArgument` for an unknown device.
    """
    if type(x) is Tracer:
        x.__dlpack__()  # raises `ConcretizationError`
    if isinstance(x, Array):
        result: Array = device_put(x, device)
        return duplicate(result) if copy and result._shards is x._shards else result
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise NotAnArray(
            f"from_dlpack got a {type(x).__module__}.{type(x).__qualname__}, which has not both of "
            "__dlpack__ and __dlpack_device__"
        )
    device_type, index = _dlpack_device(x)
    if device_type == _CPU:
        return _from_host(x, device, copy)
    backend = default_device().client
    devices = backend.addressable_devices()
    if not 0 <= index < len(devices):
        raise InvalidArgument(
            f"from_dlpack got a {type(x).__module__}.{type(x).__qualname__} on the DLPack device "
            f"({device_type}, {index}); {backend.backend_name} has {len(devices)} devices here, "
            f"{list(devices)}. Copy it to the host first, for instance with numpy.asarray"
        )
    made = array_on(_import_buffer(x, devices[index]), committed=device is not None)
    moved: Array = device_put(made, device)
    return duplicate(moved) if copy and moved._shards is made._shards else moved


def _dlpack_device(x: Any) -> tuple[int, int]:
    """Returns DLPack's (device type, device id) of an object."""
    place = x.__dlpack_device__()
    try:
        device_type, index = place
        return operator.index(device_type), operator.index(index)
    except (TypeError, ValueError):
        raise NotAnArray(
            f"__dlpack_device__ of a {type(x).__module__}.{type(x).__qualname__} gave {place!r}; "
            "two integers, the device's type and its number, were expected"
        ) from None


def _from_host(x: Any, device: Any, copy: bool | None) -> Array:
    target = device.device if isinstance(device, SingleDeviceSharding) else device
    here = default_device() if target is None else target
    if isinstance(here, Device) and copy is not True and _shares_host_memory(here):
        array = array_on(_import_buffer(x, here), committed=device is not None)
        if copy is not False or _address(x) == array.unsafe_buffer_pointer():
            return array
    if copy is False:
        raise ArgumentError(f"from_dlpack was called with copy=False, and {here!r} needs a copy")
    result: Array = device_put(np.from_dlpack(x), device)
    return result


def _shares_host_memory(device: Device) -> bool:
    capabilities = device.client.capabilities
    return capabilities.dlpack and capabilities.zero_copy_put


def _import_buffer(x: Any, device: Device) -> Any:
    return device.client.buffer_from_dlpack(x.__dlpack__(), device)


def _address(x: Any) -> int:
    return int(np.from_dlpack(x).ctypes.data)
