"""Checks of arrays on their way to a device, on it, and back."""

from __future__ import annotations

import numpy as np

from plugrt.capi.abi.declarations import API_MINOR
from plugrt.capi.abi.element_types import supported_dtypes
from plugrt.errors import InvalidArgument, Unimplemented, UnsupportedDtype
from plugrt.interface import HostBufferSemantics
from plugrt_sdk.testing.subject import ONE, Array, Subject


def devices_and_memories(subject: Subject) -> None:
    """Devices have ids of their own and a default memory, and are the same objects each time."""
    client = subject.client
    found = client.devices()
    assert client.platform
    assert isinstance(client.platform_version, str)
    assert found
    assert len({device.id for device in found}) == len(found)
    assert all(again is device for again, device in zip(client.devices(), found, strict=True))
    for device in found:
        assert client.lookup_device(device.id) is device
        assert device.kind
        assert device.default_memory() in device.memories()
        assert all(device in m.addressable_by_devices() for m in device.memories())


def _put_and_get(subject: Subject, array: Array, device: int = 0) -> None:
    buffer = subject.put(array, device)
    assert buffer.device is subject.client.devices()[device]
    assert (buffer.shape, buffer.dtype) == (array.shape, array.dtype)
    host = buffer.to_host()
    assert (host.shape, host.dtype) == (array.shape, array.dtype)
    assert host.tobytes() == array.tobytes()


def shapes(subject: Subject) -> None:
    """Arrays of any rank, strides and number of elements come back as they were put."""
    source = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    views = (source, source.T, source[::-1, :, ::2], source[:, :0], source[0, 1, 2], source[1:, 1])
    for view in views:
        _put_and_get(subject, np.asarray(view))
    _put_and_get(subject, np.zeros((1,) * 8, np.float32))
    _put_and_get(subject, source, len(subject.client.devices()) - 1)


def dtypes(subject: Subject) -> None:
    """Every dtype comes back bit by bit, or is refused when it is put; declared ones come back."""
    names = supported_dtypes(API_MINOR) - {"void"}
    for name in sorted(names):
        dtype = np.dtype(name)
        array = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
        try:
            _put_and_get(subject, array)
        except (Unimplemented, InvalidArgument, UnsupportedDtype):
            assert name not in subject.declared.dtypes | {"float32"}


def host_semantics(subject: Subject) -> None:
    """An array is put under each promise about the host's memory."""
    device = subject.client.devices()[0]
    for semantics in HostBufferSemantics:
        array = ONE.copy()
        buffer = subject.client.buffer_from_host(array, device, None, semantics)
        np.testing.assert_array_equal(buffer.to_host(), ONE)


def source_may_change(subject: Subject) -> None:
    """An array on a device does not change with the memory that it was put from."""
    source = np.zeros(1000, np.float32)
    buffer = subject.put(source)
    source[:] = 1
    np.testing.assert_array_equal(buffer.to_host(), np.zeros(1000))
    assert not buffer.to_host().flags.writeable
