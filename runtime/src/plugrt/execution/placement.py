"""Which device a computation runs on: JAX's rules for committed and uncommitted arrays."""

from __future__ import annotations

from collections.abc import Sequence

from plugrt.config import config
from plugrt.errors import DeviceMismatch, InvalidArgument
from plugrt.execution.sharding import Sharding, SingleDeviceSharding
from plugrt.execution.signature import Signature
from plugrt.interface import Device
from plugrt.options import Token
from plugrt.plugins import backends

_defaults: dict[Token, Device] = {}
backends.on_clear(_defaults.clear)


def default_device() -> Device:
    """Returns the device for what nobody placed: ``config.default_device``, else the first one."""
    token = config.token()
    found = _defaults.get(token)  # each argument that is not an array yet asks
    if found is None:
        found = _defaults[token] = _find_default()
    return found


def _find_default() -> Device:
    wanted = config.default_device
    if wanted is None:
        return backends.get_backend().addressable_devices()[0]
    if isinstance(wanted, Device):
        return wanted
    return device_named(str(wanted))


def device_named(name: str) -> Device:
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


def resolve_device(
    signatures: Sequence[Signature], names: Sequence[str], explicit: Device | None, what: str
) -> tuple[Device, bool]:
    """Returns where a computation on these arguments runs, and whether its results are committed.

    An explicit device wins. Else the committed arguments decide, and must agree; uncommitted ones
    follow. With no committed argument it is the default device. ``names`` and ``what`` serve the
    message of `DeviceMismatch`.
    """
    if explicit is not None:
        return explicit, True
    found: dict[Device, int] = {}
    for i, signature in enumerate(signatures):
        if signature.committed:
            found.setdefault(home(signature.sharding), i)
    if len(found) > 1:
        lines = "".join(
            f"\n  {names[i]}: {signatures[i].tensor_type} on {device!r}"
            for device, i in found.items()
        )
        raise DeviceMismatch(
            f"received incompatible devices for {what}; arguments committed to different devices:"
            f"{lines}\nMove them to one device with plugrt.device_put"
        )
    if found:
        return next(iter(found)), True
    return default_device(), False


def home(sharding: Sharding) -> Device:
    """Returns the device that a computation on one device gathers such an array to."""
    if isinstance(sharding, SingleDeviceSharding):
        return sharding.device
    return sharding.addressable_devices[0]
