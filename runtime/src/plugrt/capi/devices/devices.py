"""`Device`, `Memory` and the part of the client that they use; device descriptions of a library."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from plugrt import interface
from plugrt.base.bounded_cache import BoundedCache
from plugrt.capi.extensions import stream
from plugrt.capi.library.client_handle import ClientHandle
from plugrt.capi.loading.library import Library
from plugrt.errors import FailedPrecondition, Unimplemented
from plugrt.interface import OptionValue
from plugrt.native.finalizers import finish_pending

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData
    from plugrt.capi.library.serialized_envelope import Origin

_MAX_SIGNATURES = 16384
_STATS = (
    "peak_bytes_in_use", "num_allocs", "largest_alloc_size", "bytes_limit", "bytes_reserved",
    "peak_bytes_reserved", "bytes_reservable_limit", "largest_free_block_bytes", "pool_bytes",
    "peak_pool_bytes", "peak_allocated_bytes",
)  # fmt: skip


class Facts(TypedDict):
    """The fields of a `DeviceDescription`, a class that no start needs."""

    id: int
    process_index: int
    kind: str
    debug_string: str
    attributes: Mapping[str, OptionValue]


def describe(library: Library, description: object) -> Facts:
    """Returns the facts in a ``PJRT_DeviceDescription*``."""

    def ask(what: str) -> CData:
        return library.call(f"DeviceDescription_{what}", device_description=description)

    def text(what: str, field: str) -> str:
        try:
            return library.text(ask(what), field)
        except Unimplemented:
            return ""

    try:
        attributes = library.named_values(ask("Attributes"), "attributes", "num_attributes")
    except Unimplemented:
        attributes = {}
    return Facts(
        id=ask("Id").id,
        process_index=ask("ProcessIndex").process_index,
        kind=text("Kind", "device_kind"),
        debug_string=text("DebugString", "debug_string"),
        attributes=attributes,
    )


def _read_own_attributes(library: Library, device: object) -> dict[str, OptionValue]:
    """Returns a device's own attributes, beyond its description's (PJRT 0.92 and later)."""
    try:
        args = library.call("Device_GetAttributes", device=device)
    except Unimplemented:
        return {}
    try:
        return library.named_values(args, "attributes", "num_attributes")
    finally:
        free = library.function(args, "attributes_deleter")
        if free is not None:
            free(args.device_attributes)


class Memory(interface.Memory):
    """A ``PJRT_Memory``, owned by its client."""

    __slots__ = ("client", "id", "kind", "pointer")

    client: ClientBase
    id: int
    kind: str

    def __init__(self, client: ClientBase, pointer: CData) -> None:
        library = client.library
        self.client = client
        self.pointer = pointer
        try:
            self.id = int(library.call("Memory_Id", memory=pointer).id)
        except Unimplemented:
            self.id = client.count_memories()
        self.kind = library.text(library.call("Memory_Kind", memory=pointer), "kind")

    def addressable_by_devices(self) -> Sequence[Device]:
        library = self.client.handle().library
        args = library.call("Memory_AddressableByDevices", memory=self.pointer)
        found = library.handles(args, "devices", "num_devices")
        return [self.client.device_at(p, args) for p in found]

    def first_device(self) -> Device:
        """Returns the first device that can address it; `FailedPrecondition` where none can."""
        devices = self.addressable_by_devices()
        if not devices:
            raise FailedPrecondition(f"no device of {self.client!r} can address {self!r}")
        return devices[0]


class Device(interface.Device):
    """A ``PJRT_Device``, owned by its client."""

    __slots__ = (
        "_memories", "attributes", "client", "debug_string", "default_memory_or_none", "id",
        "is_addressable", "kind", "local_hardware_id", "pointer", "process_index",
    )  # fmt: skip

    client: ClientBase
    attributes: Mapping[str, OptionValue]
    debug_string: str
    id: int
    is_addressable: bool
    kind: str
    local_hardware_id: int
    process_index: int

    def __init__(self, client: ClientBase, pointer: CData) -> None:
        library = client.library
        self.client = client
        self.pointer = pointer
        stated = library.call("Device_GetDescription", device=pointer).device_description
        facts = describe(library, stated)
        self.id, self.kind = facts["id"], facts["kind"]
        self.process_index, self.debug_string = facts["process_index"], facts["debug_string"]
        self.is_addressable = bool(
            library.call("Device_IsAddressable", device=pointer).is_addressable
        )
        self.attributes = {
            **facts["attributes"],
            **_read_own_attributes(library, pointer),
        }
        self.local_hardware_id = -1
        self._memories: tuple[Memory, ...] = ()
        self.default_memory_or_none: Memory | None = None
        """`default_memory`, None where the library names none."""
        if self.is_addressable:
            with contextlib.suppress(Unimplemented):
                args = library.call("Device_LocalHardwareId", device=pointer)
                self.local_hardware_id = int(args.local_hardware_id)
            self._read_memories(library)

    def _read_memories(self, library: Library) -> None:
        try:
            args = library.call("Device_AddressableMemories", device=self.pointer)
            pointers = library.handles(args, "memories", "num_memories")
        except Unimplemented:
            return
        self._memories = tuple(self.client.memory_at(p) for p in pointers)
        try:
            default = library.call("Device_DefaultMemory", device=self.pointer).memory
        except Unimplemented:
            self.default_memory_or_none = next(iter(self._memories), None)
        else:
            self.default_memory_or_none = self.client.memory_at(default)

    def memories(self) -> Sequence[Memory]:
        return self._memories

    def default_memory(self) -> Memory:
        if self.default_memory_or_none is None:
            self._unimplemented("default_memory")
        return self.default_memory_or_none

    def clear_memory_stats(self) -> None:
        """Resets the peaks of `memory_stats` (PJRT 0.106 and later)."""
        self.client.handle().library.call("Device_ClearMemoryStats", device=self.pointer)

    def stream_for_external_ready_events(self) -> int:
        library = self.client.handle().library
        return stream.stream_for_external_ready_events(library, self.pointer)

    def memory_stats(self) -> Mapping[str, int]:
        finish_pending()
        args = self.client.handle().library.call("Device_MemoryStats", device=self.pointer)
        stats = {"bytes_in_use": int(args.bytes_in_use)}
        for name in _STATS:
            if getattr(args, f"{name}_is_set"):
                stats[name] = int(getattr(args, name))
        return stats


class ClientBase(interface.Client):
    """The part of a client that its devices, buffers and executables use."""

    def __init__(self, library: Library, handle: ClientHandle, name: str) -> None:
        self.library = library
        self.name = name
        self._handle: ClientHandle | None = handle
        self._by_pointer: dict[CData, Device] = {}
        self._memories: dict[CData, Memory] = {}
        self._signatures: BoundedCache[object, tuple[object, ...]] = BoundedCache(
            _MAX_SIGNATURES, interned=True
        )
        self.copy_specs: BoundedCache[object, Any] | None = BoundedCache(_MAX_SIGNATURES)
        """The specs of copies between its devices, None once it is closed: they keep its handle."""

    def handle(self) -> ClientHandle:
        """The handle, for a call; `FailedPrecondition` once the client is closed."""
        if self._handle is None:
            raise FailedPrecondition(f"the client of {self.name!r} is closed")
        return self._handle

    @property
    def backend_name(self) -> str:
        return f"{self.name!r} ({self.library.path})"

    @property
    def origin(self) -> Origin:
        """The library and the platform of this client's executables."""
        from plugrt.capi.library.serialized_envelope import Origin

        return Origin(self.library, self.platform, self.platform_version)

    def device_at(self, pointer: CData, reply: CData) -> Device:
        """Returns the device of a ``PJRT_Device*`` that a library gave in ``reply``."""
        try:
            return self._by_pointer[pointer]
        except KeyError:
            raise self.library.invalid(
                reply, f"it named {pointer}, which is none of the client's devices"
            ) from None

    def count_memories(self) -> int:
        """Returns how many memories are known: the number of the next one."""
        return len(self._memories)

    def memory_at(self, pointer: CData) -> Memory:
        """Returns the memory of a ``PJRT_Memory*``."""
        if pointer not in self._memories:
            self._memories[pointer] = Memory(self, pointer)
        return self._memories[pointer]

    def intern_signature(self, signature: tuple[object, ...]) -> tuple[Any, ...]:
        """Returns the one object equal to ``signature``: comparing them is comparing identities."""
        return self._signatures.get_or_make(signature, lambda: signature)
