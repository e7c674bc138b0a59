"""Arrays of devices: made from arguments, and found by ids when unpickled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plugrt.errors import DeviceMismatch, InvalidArgument
from plugrt.interface import Client, Device, DeviceDescription
from plugrt.plugins.selection import backends

DeviceArray: TypeAlias = npt.NDArray[Any]
"""An array of dtype object, whose elements are devices."""


def read_devices(devices: npt.ArrayLike | Sequence[object] | Device, of: str) -> DeviceArray:
    """Returns devices (an array, nested sequences, or one) as a new read-only array.

    ``of`` names the calling class. Raises `InvalidArgument` for no devices, for an object that is
    no device and for a device that occurs twice; `DeviceMismatch` for devices of several backends.
    """
    array = np.array(devices, dtype=object)
    flat = [*array.flat]
    wrong = [x for x in flat if not isinstance(x, Device)]
    if any(isinstance(x, DeviceDescription) for x in wrong):
        raise InvalidArgument(
            f"{of} has devices that are here; {wrong[0]!r:.100} is one of a topology. Use an "
            "AbstractMesh of as many devices, and compile(topology=...), which takes the devices "
            "of the topology in their order"
        )
    if wrong or not flat:
        raise InvalidArgument(
            f"{of} takes an array of devices, at least one (see plugrt.devices()); got "
            f"{f'{wrong[0]!r:.100}' if wrong else 'none'}"
        )
    twice = sorted(repr(device) for device, count in Counter(flat).items() if count > 1)
    if twice:
        raise InvalidArgument(f"{of} has each device once; got {', '.join(twice)} twice")
    if len({device.client for device in flat}) > 1:
        raise DeviceMismatch(
            f"the devices of a {of} are of one backend; got "
            + ", ".join(sorted({device.client.backend_name for device in flat}))
        )
    array.flags.writeable = False
    return array


def name_client(client: Client) -> str:
    """Returns the name that `plugrt.devices` finds a client by, also in another process."""
    names = [name for name, known in backends.backends().items() if known is client]
    return names[0] if names else client.platform


def find_devices(backend: str, ids: npt.ArrayLike, of: str) -> DeviceArray:
    """Returns the devices of a backend with these ids, for a pickled object of the class ``of``.

    Raises `InvalidArgument` if the backend in this process has no device of an id.
    """
    known = {device.id: device for device in backends.devices(backend)}
    wanted = np.asarray(ids)
    missing = sorted({int(i) for i in wanted.flat} - set(known))
    if missing:
        raise InvalidArgument(
            f"a pickled {of} has the devices {missing} of {backend}; here it has {sorted(known)}"
        )
    grid = np.empty(wanted.shape, object)
    for at in np.ndindex(wanted.shape):
        grid[at] = known[int(wanted[at])]
    return grid
