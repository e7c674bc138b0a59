"""`read_chain`: reads a library's chain of extensions, with every pointer checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.process_map import AddressMap
from plugrt.errors import PluginBroken

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

EXTENSION_NAMES = (
    "Gpu_Custom_Call", "Profiler", "Custom_Partitioner", "Stream", "Layouts", "FFI",
    "MemoryDescriptions", "Triton", "RawBuffer", "PhaseCompile", "Example", "Unknown",
    "CrossHostTransfers", "ExecutableMetadata", "Callback", "HostAllocator", "TpuTopology",
    "TpuExecutable", "Megascale", "Shardings", "AbiVersion", "Collectives", "MultiSlice",
    "HostMemoryAllocator", "XlaTransform",
)  # fmt: skip
"""The names of ``PJRT_Extension_Type``, by value."""

MAX_EXTENSIONS = 128
MAX_STRUCT = 1 << 16
_BASE_SIZE: int = ffi.sizeof("PJRT_Extension_Base")


def extension_name(number: int) -> str:
    """Returns the name of an extension type, ``type N`` for one newer than the declarations."""
    return EXTENSION_NAMES[number] if 0 <= number < len(EXTENSION_NAMES) else f"type {number}"


def read_chain(start: CData, where: str, addresses: AddressMap) -> dict[str, CData]:
    """Maps each extension's name to its ``PJRT_Extension_Base*``, the first of each type.

    Raises `PluginBroken` for a chain with a cycle, an invalid pointer, an implausible size, or more
    than `MAX_EXTENSIONS` nodes. If addresses cannot be checked (without ``/proc``), the chain is
    read only up to the first extension of an undeclared type: an invalid pointer may have led to
    it, and its own next pointer would be invalid, too.
    """
    found: dict[str, CData] = {}
    seen: set[int] = set()
    node = start
    while node != ffi.NULL:
        address = int(ffi.cast("uintptr_t", node))
        if address in seen:
            raise PluginBroken(f"{where}: the chain of extensions runs in a circle")
        seen.add(address)
        if len(seen) > MAX_EXTENSIONS:
            raise PluginBroken(
                f"{where}: the chain of extensions has more than {MAX_EXTENSIONS} members"
            )
        if address % 8 or not addresses.readable(address, _BASE_SIZE):
            raise PluginBroken(
                f"{where}: the chain of extensions leads to the address {address:#x}, "
                "which is not memory of this process"
            )
        if not addresses.is_known and not 0 <= node.type < len(EXTENSION_NAMES):
            break
        size = node.struct_size
        if not _BASE_SIZE <= size <= MAX_STRUCT or not addresses.readable(address, size):
            raise PluginBroken(
                f"{where}: the extension {extension_name(node.type)} states a size of {size} "
                f"bytes; between {_BASE_SIZE} and {MAX_STRUCT} was expected"
            )
        found.setdefault(extension_name(node.type), node)
        node = node.next
    return found
