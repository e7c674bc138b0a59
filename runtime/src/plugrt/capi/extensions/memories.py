"""MemoryDescriptions: the memories of a device that may be absent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plugrt.capi.loading.library import Library


@dataclass(frozen=True, slots=True)
class MemoryDescription:
    """A memory kind, such as ``device``, and the library's number for it."""

    kind: str
    kind_id: int


def memory_descriptions(library: Library, description: Any) -> Sequence[MemoryDescription]:
    """Returns the memories of a ``PJRT_DeviceDescription*``, the default first."""
    table = library.extension("MemoryDescriptions")
    args = table.call("DeviceDescription_MemoryDescriptions", device_description=description)
    found = []
    for pointer in table.handles(args, "memory_descriptions", "num_memory_descriptions"):
        kind = table.call("MemoryDescription_Kind", memory_description=pointer)
        found.append(MemoryDescription(table.text(kind, "kind"), kind.kind_id))
    if 0 <= args.default_memory_index < len(found):
        found.insert(0, found.pop(args.default_memory_index))
    return found
