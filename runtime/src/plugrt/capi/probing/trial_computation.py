"""`try_client`: one small computation on a backend, compared with its known result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from plugrt.errors import PluginBroken
from plugrt.interface import Buffer, Client, CompileOptions, Device, DeviceAssignment, Program

PROGRAM = Program(
    b"module @trial {\n"
    b"  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
    b"    %y = stablehlo.add %x, %x : tensor<4xf32>\n"
    b"    return %y : tensor<4xf32>\n"
    b"  }\n"
    b"}\n",
    name="trial",
)
_NUMBERS = np.array([1, -2, 3.5, 1024], np.float32)


def check_devices(client: Client) -> Device:
    """Returns the first device that this process can use, after checking all devices.

    Raises `PluginBroken` where there is no device, where several have one id, and where this
    process can use none.
    """
    devices = list(client.devices())
    if not devices:
        raise PluginBroken("its client has no devices")
    again = [number for number, count in Counter(d.id for d in devices).items() if count > 1]
    if again:
        raise PluginBroken(f"several of its {len(devices)} devices have the id {again[0]}")
    usable = client.addressable_devices()
    if not usable:
        raise PluginBroken(f"this process can use none of its {len(devices)} devices")
    return usable[0]


def try_client(client: Client, step: Callable[[str], None]) -> None:
    """Puts four numbers on a device, reads them, and runs ``x + x`` on them.

    ``step`` is called with the name of what is next: ``devices``, ``put``, ``read``, ``compile``,
    ``execute``, ``result``. Raises what the backend raises (`Unimplemented` where it has no such
    function), and `PluginBroken` for a wrong result.
    """
    step("devices")
    device = check_devices(client)
    step("put")
    buffer = client.buffer_from_host(_NUMBERS, device)
    step("read")
    _compare(buffer, _NUMBERS, "what was put on the device was read back")
    step("compile")
    where = DeviceAssignment(((device.id,),))
    loaded = client.compile(PROGRAM, CompileOptions(device_assignment=where))
    step("execute")
    results = loaded.execute([[buffer]])
    step("result")
    if len(results) != 1 or len(results[0]) != 1:
        raise PluginBroken(f"a program of one result gave {len(results)} lists of results")
    _compare(results[0][0], 2 * _NUMBERS, "x + x was computed")


def _compare(buffer: Buffer, expected: np.ndarray, what: str) -> None:
    found = np.asarray(buffer.to_host())
    if found.shape != expected.shape or found.dtype != expected.dtype:
        raise PluginBroken(
            f"{what} as {found.dtype.name}{list(found.shape)} instead of "
            f"{expected.dtype.name}{list(expected.shape)}"
        )
    if not np.array_equal(found, expected):
        raise PluginBroken(f"{what} as {found.tolist()} instead of {expected.tolist()}")
