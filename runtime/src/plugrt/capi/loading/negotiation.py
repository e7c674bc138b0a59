"""Which functions of a library work: an answer UNIMPLEMENTED means that a function is missing.

Libraries fill their tables with functions that only answer so (IREE's and tt-xla's plugins,
https://github.com/iree-org/iree/issues/19223), so that a slot proves nothing. Functions are of
these kinds:

- Queries (`QUERIES`) have no choices among their arguments: after one such answer the function is
  missing for the library, as if its slot were NULL, and is not called again.
- Operations with several ways (`WAYS`) are done by the first way that works. An answer counts for
  the function with a key of the arguments that matter (dtype, layout, memory kind): a library may
  lack one dtype only. If every way fails, the first way's error is raised.
- ``Event_Await`` has its place in the table taken by a poll of ``Event_IsReady``.
- All others are essential, or optional without another way: the error is raised, with their name.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

from plugrt.errors import Unimplemented

T = TypeVar("T")

QUERIES = frozenset({
    "Plugin_Attributes", "Client_PlatformVersion", "Client_ProcessIndex",
    "Client_AddressableMemories", "Memory_Id",
    "Client_DefaultDeviceAssignment", "Client_TopologyDescription",
    "DeviceDescription_Attributes", "DeviceDescription_Kind", "DeviceDescription_DebugString",
    "Device_AddressableMemories", "Device_DefaultMemory", "Device_GetAttributes",
    "Device_LocalHardwareId", "Device_MemoryStats", "Memory_Kind",
    "Executable_Name", "Executable_NumReplicas", "Executable_NumPartitions",
    "Executable_OutputElementTypes", "Executable_OutputDimensions", "Executable_OutputMemoryKinds",
    "Executable_ParameterMemoryKinds", "Executable_Fingerprint",
    "LoadedExecutable_GetDeviceAssignment", "LoadedExecutable_AddressableDeviceLogicalIds",
    "Buffer_OnDeviceSizeInBytes", "Buffer_IsOnCpu", "Buffer_IsDeleted", "Buffer_Dimensions",
    "Buffer_ElementType", "Buffer_GetMemoryLayout", "Event_IsReady",
})  # fmt: skip
"""Functions that are missing for a library after one answer UNIMPLEMENTED."""

WAYS: Mapping[str, tuple[str, ...]] = {
    "copy to a device": ("Buffer_CopyToDevice", "Buffer_CopyToMemory", "through the host"),
    "copy to a memory": ("Buffer_CopyToMemory", "Buffer_CopyToDevice", "through the host"),
    "delete": ("Buffer_Delete", "Buffer_Destroy, with the last reference"),
    "read": (
        "Buffer_UnsafePointer and Buffer_OnDeviceSizeInBytes, a view", "Buffer_ToHostBuffer",
        "Buffer_CopyRawToHost",
    ),
    "size": ("Buffer_OnDeviceSizeInBytes", "shape and dtype"),
    "types of results": (
        "Executable_OutputElementTypes and Executable_OutputDimensions", "the optimised program",
    ),
    "number of parts": (
        "Executable_NumReplicas and Executable_NumPartitions", "the compile options",
    ),
    "name of a program": ("Executable_Name", "the program"),
    "deletion": ("Buffer_IsDeleted", "the donated arguments"),
    "layouts": ("the extension Layouts", "the optimised program"),
    "shardings": ("the extension Shardings", "the optimised program"),
}  # fmt: skip
"""Each operation to its ways, in order of preference."""


class Ways:
    """The ways of a library's operations that were found missing."""

    def __init__(self) -> None:
        self._missing: dict[tuple[str, str, Hashable], str] = {}
        """(operation, way, key) to the message of the answer."""

    def is_missing(self, operation: str, way: str) -> bool:
        """Whether a way of an operation was found missing, for whatever arguments."""
        return any(place[:2] == (operation, way) for place in self._missing)

    def take(self, operation: str, key: Hashable, *ways: Callable[[], T] | None) -> T:
        """Returns the result of the first way that works; ``ways`` are in the order of `WAYS`.

        None means that these arguments do not support a way. Raises the first `Unimplemented` if
        every way raises one; other errors propagate at once. The last way is tried each time:
        whether it works may depend on the program.
        """
        names, messages = WAYS[operation], []
        for name, way in zip(names, ways, strict=True):
            if way is None:
                continue
            place = operation, name, key
            message = self._missing.get(place)
            if message is None:
                try:
                    return way()
                except Unimplemented as error:
                    message = error.message
                    if name != names[-1]:
                        self._missing[place] = message
            messages.append(message)
        raise Unimplemented(messages[0])
