"""The abstract backend interface: PJRT's object model, the only part of a backend that plugrt uses.

The classes are the same as in the PJRT C API (``xla/pjrt/c/pjrt_c_api.h``): `Client`, `Device`,
`Memory`, `Topology`, `Executable`, `LoadedExecutable`, `Buffer`, `Event`. No jaxlib type, no C
pointer and no MLIR object crosses this package.

Two rules hold for every class here:

* Every method not marked optional must be implemented. Where a backend omits an optional method,
  the default raises `Unimplemented` (PJRT code 12) with its own name in the message, never
  `AttributeError`.
* Ownership is explicit: ``delete()`` and ``close()`` may be called twice; a client may be closed
  while buffers live; nothing relies on the order of the interpreter's teardown.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from plugrt.interface.buffer import Buffer, Shards, require_buffers
from plugrt.interface.client import Client
from plugrt.interface.device import Device
from plugrt.interface.event import Event, ReadyEvent
from plugrt.interface.memory import Memory
from plugrt.interface.promises import HostBufferSemantics, OptionValue

if TYPE_CHECKING:
    from plugrt.interface.capabilities import Capabilities
    from plugrt.interface.executable import Executable, MemoryAnalysis
    from plugrt.interface.handler_calls import calling_launch
    from plugrt.interface.loaded_executable import LoadedExecutable
    from plugrt.interface.memory_layout import Layout
    from plugrt.interface.program import (
        HOST_CALLBACK,
        CompileOptions,
        DeviceAssignment,
        ExecuteOptions,
        Handler,
        HandlerStages,
        HostCallback,
        Program,
    )
    from plugrt.interface.steps import HeldForm, LaunchSteps
    from plugrt.interface.steps import MakeScratch as MakeScratch
    from plugrt.interface.topology import DeviceDescription, Topology
    from plugrt.interface.values import TOKEN_TYPE, TensorType

__all__ = [
    "HOST_CALLBACK",
    "TOKEN_TYPE",
    "VERSION",
    "Buffer",
    "Capabilities",
    "Client",
    "CompileOptions",
    "Device",
    "DeviceAssignment",
    "DeviceDescription",
    "Event",
    "Executable",
    "ExecuteOptions",
    "Handler",
    "HandlerStages",
    "HeldForm",
    "HostBufferSemantics",
    "HostCallback",
    "LaunchSteps",
    "Layout",
    "LoadedExecutable",
    "Memory",
    "MemoryAnalysis",
    "OptionValue",
    "Program",
    "ReadyEvent",
    "Shards",
    "TensorType",
    "Topology",
    "calling_launch",
    "require_buffers",
]

# A process without programs starts in a twentieth less time without these.
_HOMES = {
    "Capabilities": "plugrt.interface.capabilities",
    **dict.fromkeys(("Executable", "MemoryAnalysis"), "plugrt.interface.executable"),
    "calling_launch": "plugrt.interface.handler_calls",
    "Layout": "plugrt.interface.memory_layout",
    "LoadedExecutable": "plugrt.interface.loaded_executable",
    **dict.fromkeys(
        ("HOST_CALLBACK", "CompileOptions", "DeviceAssignment", "ExecuteOptions", "Handler",
         "HandlerStages", "HostCallback", "Program"),
        "plugrt.interface.program",
    ),
    **dict.fromkeys(("LaunchSteps", "MakeScratch", "HeldForm"), "plugrt.interface.steps"),
    **dict.fromkeys(("DeviceDescription", "Topology"), "plugrt.interface.topology"),
    **dict.fromkeys(("TOKEN_TYPE", "TensorType"), "plugrt.interface.values"),
}  # fmt: skip

VERSION = (1, 1)
"""The version, (major, minor), of the interface that plugins implement. ¶ It covers the classes of
this package, `plugrt.plugins.Plugin`, the hooks, and `plugrt_sdk.Backend`.

The minor version grows with additions, which are optional for plugins; the major version with
changes that break existing plugins. A plugin states the version that it is written for in
`plugrt.plugins.Plugin.interface_version`.
"""


if not TYPE_CHECKING:  # a type checker reports a missing name as an error

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_HOMES})
