"""The default device, devices by name, and the device that an array is gathered to."""

from __future__ import annotations

from plugrt.base.bounded_cache import BoundedCache
from plugrt.errors import InvalidArgument
from plugrt.interface import Client, Device
from plugrt.plugins.selection import backends
from plugrt.settings.declarations import config
from plugrt.settings.options import Token

_defaults: BoundedCache[Token, Device] = BoundedCache(64)
backends.on_clear(_defaults.clear)


def default_device() -> Device:
    """Returns the device for data without a placement: ``config.default_device``, or the first."""
    token = config.token()
    found = _defaults.get(token)  # looked up for each argument that is not an array
    if found is None:
        found = _find_default(token.settings["default_device"])
        _defaults.keep(token, found)
    return found


def _find_default(wanted: object) -> Device:
    if wanted is None:
        return backends.get_backend().addressable_devices()[0]
    if isinstance(wanted, Device):
        require_addressable(wanted, "default_device")
        return wanted
    return find_device(str(wanted))


def default_device_of(client: Client) -> Device:
    """Returns the default device if it is the client's, else the client's first.

    Without ``config.default_device`` this does not start the default backend.
    """
    wanted = None if config.default_device is None else default_device()
    return wanted if wanted and wanted.client is client else client.addressable_devices()[0]


def find_device(name: str) -> Device:
    """Returns the device called ``platform`` or ``platform:index`` (among the local ones)."""
    platform, _, index = name.partition(":")
    devices = backends.get_backend(platform).addressable_devices()
    if not index:
        return devices[0]
    if not index.isdecimal() or int(index) >= len(devices):
        raise InvalidArgument(
            f"there is no device {name!r}; platform {platform!r} has "
            f"{', '.join(f'{platform}:{i}' for i in range(len(devices)))}"
        )
    return devices[int(index)]


def require_addressable(device: Device, what: str) -> None:
    """Raises `InvalidArgument` for a device of another process, where no data can be put."""
    if not device.is_addressable:
        raise InvalidArgument(
            f"{what} names {device!r} of process {device.process_index}; this is process "
            f"{device.client.process_index}, whose devices are "
            f"{[*device.client.addressable_devices()]} (plugrt.local_devices()). What several "
            "processes share is an array over a mesh with devices of each"
        )
