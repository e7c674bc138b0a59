"""`require_addressable`: refuses devices of other processes where one of this one is needed."""

from __future__ import annotations

from plugrt.errors import InvalidArgument
from plugrt.interface import Device


def require_addressable(device: Device, what: str) -> None:
    """Raises `InvalidArgument` for a device of another process, to which nothing can be put."""
    if not device.is_addressable:
        raise InvalidArgument(
            f"{what} names {device!r} of process {device.process_index}; this is process "
            f"{device.client.process_index}, whose devices are "
            f"{[*device.client.addressable_devices()]} (plugrt.local_devices()). What several "
            "processes share is an array over a mesh with devices of each"
        )
