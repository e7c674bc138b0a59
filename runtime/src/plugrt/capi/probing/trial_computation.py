"""`try_client`: one small computation on a backend; `ProbeResult`: how far a trial has come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

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

STAGES = {
    "load": "while it was loaded",
    "initialize": "in PJRT_Plugin_Initialize",
    "client": "in PJRT_Client_Create, or while its devices were listed",
    "devices": "while its devices were listed",
    "put": "while numbers were put on a device",
    "read": "while numbers were read from a device",
    "compile": "while a program was compiled",
    "execute": "while a program was run",
    "result": "while a program's result was read",
    "end": "when the process ended, after all had worked",
}
"""How far a probe has come, and the words for a process that ended there."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """``state`` is ``ok``, ``unavailable`` (it works, but not on this machine), ``broken`` or
    ``incompatible``; ``facts`` holds the findings until then (version, extensions, devices,
    and in ``remarks`` what it does to its process).
    """

    state: str
    reason: str = ""
    cure: str = ""
    facts: Mapping[str, object] = field(default_factory=dict)


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

    ``step`` is called with the name of the next step: ``devices``, ``put``, ``read``, ``compile``,
    ``execute``, ``result``. Raises the backend's errors (`Unimplemented` for a missing function),
    and `PluginBroken` for a wrong result.
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
