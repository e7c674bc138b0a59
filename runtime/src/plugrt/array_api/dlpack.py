"""`from_dlpack`: arrays that share memory with other libraries' arrays."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.base import dlpack_types
from plugrt.errors import (
    ArgumentError,
    InvalidArgument,
    NotAnArray,
    PluginError,
    Unimplemented,
    describe,
)
from plugrt.execution.arrays.array import Array, duplicate
from plugrt.execution.arrays.array_making import array_on
from plugrt.execution.placement.default_device import default_device
from plugrt.execution.shardings.sharding_base import SingleDeviceSharding
from plugrt.execution.transfers.transfer import device_put
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Client, Device
from plugrt.plugins.selection import backends
from plugrt.tracing.tracer import Tracer
from plugrt.typing import DeviceLike, SupportsDLPack


@with_argument_errors
def from_dlpack(
    x: SupportsDLPack, /, *, device: DeviceLike | None = None, copy: bool | None = None
) -> Array:
    """Returns the data of an object with ``__dlpack__``, sharing its memory where possible.

    Data in host memory go to ``device``, else to the default device (in the standard: to a CPU).
    Data on a GPU stay there unless ``device`` is given; uses of the array are ordered after the
    work that the data's library has enqueued on its current stream. If no backend here can use the
    data's memory and ``device`` is given, the library must export them in host memory
    (``dl_device=(1, 0)``). ``copy`` as in `asarray`. Writing to shared memory is undefined
    behaviour, since arrays must not change; donating the array writes there. Without ``device`` the
    array is uncommitted. Keeps shape and dtype. Raises `NotAnArray` for objects without the
    protocol, `ArgumentError` if ``copy`` is False and a copy is needed, `InvalidArgument` for an
    unknown device whose library exports no copy, and for data on a GPU that are not in C order or
    not aligned to 16 bytes: their own library must copy these.
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
    if device_type in dlpack_types.ON_HOST:
        return _import_host(x, device_type, device, copy)
    try:
        here = _find_device(x, device_type, index)
    except InvalidArgument as fault:
        if device is None:
            raise
        return _import_host(_InHostMemory(x, copy, fault), dlpack_types.CPU, device, copy)
    made = array_on(_share_on(here, x), committed=device is not None)
    moved: Array = device_put(made, device)
    shared = moved._shards is made._shards
    if copy is False and not shared:
        raise ArgumentError(
            f"from_dlpack was called with copy=False, and {device!r} needs a copy of what is on "
            f"{here!r}"
        )
    return duplicate(moved) if copy and shared else moved


def _find_device(x: object, device_type: int, index: int) -> Device:
    """Returns the device of an object, by DLPack's device type and hardware number."""
    what = (
        f"from_dlpack got a {type(x).__module__}.{type(x).__qualname__} on the DLPack device "
        f"({device_type}, {index})"
    )
    cure = "Copy it to the host first, in its own library, or give device=, which asks that library"
    platform = dlpack_types.PLATFORMS.get(device_type)
    if platform is None:
        known = sorted({dlpack_types.CPU, *dlpack_types.PLATFORMS, *dlpack_types.ON_HOST})
        raise InvalidArgument(f"{what}; plugrt takes memory of the types {known}. {cure}")
    try:
        client = _client_of(platform)
    except PluginError as error:
        raise InvalidArgument(
            f"{what}, which needs the platform {platform!r}: {error}. {cure}"
        ) from error
    devices = client.addressable_devices()
    for device in devices:
        if device.local_hardware_id == index:
            return device
    ids = [device.local_hardware_id for device in devices]
    raise InvalidArgument(
        f"{what}; {client.backend_name} has the local hardware ids {ids} here. {cure}"
    )


class _InHostMemory:
    """Wraps an object whose data its library must export in host memory.

    ``fault`` is the reason why the object's own memory cannot be used.
    """

    def __init__(self, x: Any, copy: bool | None, fault: InvalidArgument) -> None:
        self._x, self._copy, self._fault = x, copy, fault

    def __dlpack__(self, **options: Any) -> Any:
        options |= {"dl_device": (dlpack_types.CPU, 0), "copy": self._copy}
        try:
            return self._x.__dlpack__(**options)
        except (BufferError, TypeError) as error:  # TypeError: a __dlpack__ from before 2023
            kind = ArgumentError if self._copy is False else InvalidArgument
            raise kind(
                f"{self._fault}. Asked for it in host memory, its library says: {describe(error)}"
            ) from error

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack_types.CPU, 0


def _client_of(platform: str) -> Client:
    client = default_device().client
    return client if client.platform == platform else backends.get_backend(platform)


def _share_on(device: Device, x: Any) -> Any:
    """Returns a buffer over an object's memory, on the device of that memory."""
    try:
        stream = device.stream_for_external_ready_events()
    except Unimplemented as error:
        # The object's library would have to wait on the host, which DLPack cannot request: with
        # None, 1 or 2 only a default stream waits, and the device's own streams do not wait for
        # that, so programs could read the memory before it is written.
        raise InvalidArgument(
            f"from_dlpack cannot order work on {device!r} after that of a "
            f"{type(x).__module__}.{type(x).__qualname__}: {error}. Copy it to the host first, in "
            "its own library"
        ) from error
    # The object's library makes this stream wait for its work, and the view is ready after it.
    return device.client.buffer_from_dlpack(x.__dlpack__(stream=stream), device, stream)


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


def _import_host(x: Any, device_type: int, device: Any, copy: bool | None) -> Array:
    target = device.device if isinstance(device, SingleDeviceSharding) else device
    here = default_device() if target is None else target
    # Not every client accepts capsules of pinned memory.
    as_it_is = device_type == dlpack_types.CPU and copy is not True
    capsule = None
    if isinstance(here, Device) and as_it_is and _can_share_host_memory(here):
        capsule = _make_writable_capsule(x)
    if capsule is not None:
        address = _address(capsule) if copy is False else None
        buffer = here.client.buffer_from_dlpack(capsule, here)
        array = array_on(buffer, committed=device is not None)
        if copy is not False or address == array.unsafe_buffer_pointer():
            return array
    if copy is False:
        raise ArgumentError(f"from_dlpack was called with copy=False, and {here!r} needs a copy")
    result: Array = device_put(_view(x), device)
    return result


def _can_share_host_memory(device: Device) -> bool:
    capabilities = device.client.capabilities
    return capabilities.dlpack and capabilities.zero_copy_put


def _address(capsule: object) -> int:
    # Imported late, here and below: the reader of capsules imports PJRT clients.
    from plugrt.capi.buffers.dlpack import find_address

    return find_address(capsule)


def _view(x: Any) -> npt.NDArray[np.generic]:
    """Returns a view of an object's host memory, also of bfloat16, which NumPy does not accept."""
    if isinstance(x, np.ndarray):
        return x
    from plugrt.capi.buffers.dlpack_host import view_capsule

    capsule = _make_writable_capsule(x)
    return np.from_dlpack(x) if capsule is None else view_capsule(capsule)


def _make_writable_capsule(x: Any) -> object:
    """Returns a capsule of an object; None for one whose memory is read-only, as NumPy's may be.

    Only capsules of DLPack 1.0 state that. They are not requested: data in read-only memory are
    copied, because donating the array would write there. NumPy reads them if a library exports no
    others.
    """
    try:
        capsule = x.__dlpack__()
    except BufferError:
        return None
    # The name of a capsule is in its repr, so the reader of capsules need not be imported.
    return None if "dltensor_versioned" in repr(capsule) else capsule
