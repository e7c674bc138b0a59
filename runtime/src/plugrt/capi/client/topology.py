"""`Topology`: devices that a library can compile for, present on this machine or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from plugrt import interface
from plugrt.capi.abi import c_values, proto_wire
from plugrt.capi.devices.capabilities import CHOOSES
from plugrt.capi.devices.devices import describe
from plugrt.capi.library.serialized_envelope import Origin
from plugrt.capi.loading.library import Library
from plugrt.capi.programs.executable import Executable, program_struct
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import CompileOptions, DeviceDescription, OptionValue, Program

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData


@dataclass(frozen=True, slots=True)
class MemoryDescription:
    """A memory kind, such as ``device``, and the library's number for it."""

    kind: str
    kind_id: int


def memory_descriptions(library: Library, description: object) -> Sequence[MemoryDescription]:
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


class Topology(interface.Topology):
    """A ``PJRT_TopologyDescription``; ``owner`` is the client's handle when that owns it."""

    __slots__ = ("__dict__", "__weakref__", "_library", "_owner", "_pointer")

    def __init__(self, library: Library, pointer: CData, owner: object = None) -> None:
        self._library = library
        self._owner = owner

        if owner is None:
            pointer = library.own("TopologyDescription_Destroy", "topology", pointer)
        self._pointer = pointer

    def _call(self, what: str) -> CData:
        return self._library.call(f"TopologyDescription_{what}", topology=self._pointer)

    @property
    def pointer(self) -> CData:
        """The ``PJRT_TopologyDescription*``."""
        return self._pointer

    @property
    def backend_name(self) -> str:
        return f"{self.platform!r} ({self._library.path})"

    @cached_property
    def platform(self) -> str:
        return self._library.text(self._call("PlatformName"), "platform_name")

    @cached_property
    def platform_version(self) -> str:
        return self._library.text(self._call("PlatformVersion"), "platform_version")

    def _descriptions(self) -> list[CData]:
        args = self._call("GetDeviceDescriptions")
        return self._library.handles(args, "descriptions", "num_descriptions")

    @cached_property
    def devices(self) -> Sequence[DeviceDescription]:
        found = (
            DeviceDescription(**describe(self._library, pointer))
            for pointer in self._descriptions()
        )
        return tuple(sorted(found, key=lambda device: device.id))

    def memories(self) -> dict[int, Sequence[MemoryDescription]]:
        """Returns device id to its memories, the default first (extension MemoryDescriptions)."""
        return {
            describe(self._library, pointer)["id"]: memory_descriptions(self._library, pointer)
            for pointer in self._descriptions()
        }

    @cached_property
    def attributes(self) -> Mapping[str, OptionValue]:
        args = self._call("Attributes")
        return self._library.named_values(args, "attributes", "num_attributes")

    @cached_property
    def stablehlo_current_version(self) -> tuple[int, int, int] | None:
        stated = self._library.attributes().get("stablehlo_current_version")
        if isinstance(stated, list) and len(stated) == 3:
            return (stated[0], stated[1], stated[2])
        return None

    @with_argument_errors
    def compile(self, program: Program, options: CompileOptions) -> Executable:
        code, _keep = program_struct(program)
        checked = proto_wire.encode_checked_options(
            options, lambda: self.attributes.get(CHOOSES) is True
        )
        encoded, size = c_values.chars(checked)
        args = self._library.call(
            "Compile",
            topology=self._pointer,
            program=code,
            compile_options=encoded,
            compile_options_size=size,
        )
        origin = Origin(self._library, self.platform, self.platform_version)
        return Executable(self._library, args.executable, origin, (self,))

    def serialize(self) -> bytes:
        return self._library.owned_bytes(
            self._call("Serialize"),
            "serialized_bytes",
            "serialized_topology",
            "serialized_topology_deleter",
        )

    def fingerprint(self) -> int:
        return int(self._call("Fingerprint").fingerprint)
