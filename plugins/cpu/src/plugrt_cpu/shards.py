"""`CpuShards`: the buffers of one array, kept together as jaxlib made them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from plugrt.errors import DeletedBuffer, InvalidArgument
from plugrt.interface import Buffer, TensorType
from plugrt.lifetime.forks import in_child
from plugrt_cpu import adapter
from plugrt_cpu.buffer import CpuBuffer, read
from plugrt_cpu.device import Place
from plugrt_cpu.errors import JAXLIB_ERRORS, translate_use
from plugrt_cpu.event import CpuEvent
from plugrt_cpu.shards_wait import wait_for_class
from plugrt_cpu.types import array_type

if TYPE_CHECKING:
    import numpy.typing as npt


class CpuShards(Sequence[Buffer]):
    """One jaxlib array over the devices of ``place``, and a sequence of its buffers.

    Launches on all devices at once return and accept jaxlib's one array; it is split when one of
    its buffers is read. Arrays made on one device at a time are joined for such a launch.
    """

    __slots__ = ("__weakref__", "_buffers", "_ends", "_parts", "place", "raw", "type")

    raw: Any
    _ends: tuple[Any, ...] | None  # tokens of the launches, one a device, that made the parts
    _parts: Sequence[Any] | None
    _buffers: list[CpuBuffer] | None

    # A launch makes one of these for each result: attributes that are rarely used are not set.
    def __init__(self, raw: Any, type: TensorType, place: Place) -> None:
        self.raw = raw
        self.type = type
        self.place = place
        self._parts = None  # each launch on several devices calls this

    @classmethod
    def from_buffers(cls, buffers: Sequence[Buffer], place: Place) -> CpuShards:
        """Returns the shards of one buffer on each device of ``place``, in that order."""
        if len(buffers) == 1 and place.single and isinstance(buffers[0], CpuBuffer):
            return cls(buffers[0].raw, buffers[0].type, buffers[0].place)
        if len(buffers) != len(place.devices):
            raise InvalidArgument(
                f"an argument has {len(buffers)} buffers for the {len(place.devices)} devices "
                f"{list(place.devices)}"
            )
        ours = [buffer for buffer in buffers if isinstance(buffer, CpuBuffer)]
        if len(ours) != len(buffers):
            raise InvalidArgument(f"buffers of another backend among {list(buffers)}")
        _require_fit(ours, place)
        shards = cls.from_parts([buffer.raw for buffer in ours], ours[0].type, place)
        shards._buffers = ours
        return shards

    @classmethod
    def from_parts(cls, parts: Sequence[Any], type: TensorType, place: Place) -> CpuShards:
        """Returns the shards of jaxlib's array on each device of ``place``."""
        shards = cls.__new__(cls)
        shards.type = type
        shards.place = place
        shards._parts = parts
        shards._ends = None  # as `_parts`, read in each wait
        return shards

    def __getattr__(self, name: str) -> Any:
        if name in ("_ends", "_parts", "_buffers"):
            return None
        if name != "raw":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        _, aval = array_type(self.type.shape, self.type.dtype)
        self.raw = adapter.assemble(aval, self.place.sharding, list(self._parts or ()))
        return self.raw

    def require_alive(self) -> None:
        """Raises `DeletedBuffer` if one of its buffers was deleted or donated.

        jaxlib 0.10 crashes when a launch on several devices gets a deleted array.
        """
        # Workaround for jaxlib-deleted-argument
        for raw in self._parts or (self.raw,):
            if raw.is_deleted():
                raise DeletedBuffer(f"{self._title()} was deleted or donated")

    def _title(self) -> str:
        return f"an array {self.type} on {list(self.place.devices)}"

    def block_until_ready(self) -> None:
        """Waits until the contents of all buffers are ready."""
        try:
            if self.place.single:
                adapter.wait_unless_forked(self.raw)
                return
            if self._parts is not None and not in_child and await_all((self,)):
                return
            for raw in self._parts or (self.raw,):
                if raw.is_deleted():
                    self.require_alive()
                adapter.wait_unless_forked(raw)
        except JAXLIB_ERRORS as error:
            raise translate_use(error, self._title()) from error

    def to_host(self) -> npt.NDArray[Any]:
        """Returns the contents of the first buffer, like its `CpuBuffer.to_host`."""
        return read(self.raw, self.type) if self.place.single else self.buffers()[0].to_host()

    @property
    def held(self) -> Any:
        """The object that arrays hold: on one device jaxlib's array, an argument of launches."""
        return self.raw if self.place.single else self

    @property
    def is_split(self) -> bool:
        """Whether jaxlib's array of each device is known, so that no split is needed."""
        return self._parts is not None

    def delete(self) -> None:
        """Deletes all buffers."""
        self.prepare_deletion()
        if self._parts is None:
            adapter.delete(self.raw)
        for part in self._parts or ():
            adapter.delete(part)

    def prepare_deletion(self) -> None:
        """Splits an array with parts in other processes.

        `adapter.delete` deletes an array through a second one, which jaxlib 0.10 cannot make of
        such an array ("Cannot copy array to non-addressable device"), but can make of each part.
        """
        if self.place.shared and self._parts is None and not self.raw.is_deleted():
            self.parts()

    def parts(self) -> Sequence[Any]:
        """Returns jaxlib's array on each device."""
        if self._parts is not None:
            return self._parts
        if self.raw.is_deleted():
            self.require_alive()
        try:
            parts = [self.raw] if self.place.single else adapter.split(self.raw)
        except JAXLIB_ERRORS as error:
            raise translate_use(error, self._title()) from error
        self._parts = parts
        return parts

    def part_is_deleted(self, index: int) -> bool:
        """Whether the buffer at the index was deleted."""
        # Workaround for jaxlib-first-part: In jaxlib 0.10.2 is_deleted() of an array on several
        # devices returns its first buffer's state.
        raw = self.raw if self._parts is None else self._parts[index]
        return bool(raw.is_deleted())

    def buffers(self) -> list[CpuBuffer]:
        """Returns the buffers, the same objects each time."""
        if self._buffers is not None:
            return self._buffers
        if self.place.single:
            self._buffers = [CpuBuffer(self.raw, self.type, self.place)]
        elif self._parts is not None:  # separate objects, so that one does not keep all of them
            kind, of = self.place.memory_kind, zip(self._parts, self.place.devices, strict=True)
            self._buffers = [CpuBuffer(raw, self.type, d.memory(kind).place) for raw, d in of]
        else:
            self._buffers = [_Shard(self, i) for i in range(len(self.place.devices))]
        return self._buffers

    def __len__(self) -> int:
        return len(self.place.devices)

    @overload
    def __getitem__(self, index: int) -> CpuBuffer: ...
    @overload
    def __getitem__(self, index: slice) -> list[CpuBuffer]: ...
    def __getitem__(self, index: int | slice) -> CpuBuffer | list[CpuBuffer]:
        return self.buffers()[index]

    def __repr__(self) -> str:
        return f"<shards {self.type} on {list(self.place.devices)}>"


class _Shard(CpuBuffer):
    """One buffer of `CpuShards`. Waiting for it waits for all, without splitting the array."""

    __slots__ = ("_index", "_shards")

    def __init__(self, shards: CpuShards, index: int) -> None:
        device = shards.place.devices[index]
        self.type = shards.type
        self.place = device.memory(shards.place.memory_kind).place
        self._shards = shards
        self._index = index

    def __getattr__(self, name: str) -> Any:
        if name != "raw":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.raw = self._shards.parts()[self._index]
        return self.raw

    def is_deleted(self) -> bool:
        return self._shards.part_is_deleted(self._index)

    def ready_event(self) -> CpuEvent:
        self._require_alive()
        return CpuEvent(self._raw_to_await())

    def _raw_to_await(self) -> Any:
        shards = self._shards
        return shards.parts()[self._index] if shards.is_split else shards.raw

    def block_until_ready(self) -> None:
        self._require_alive()
        try:
            adapter.wait_unless_forked(self._raw_to_await())
        except JAXLIB_ERRORS as error:
            raise translate_use(error, self._title()) from error


await_all = wait_for_class(CpuShards)
"""Waits for the held objects of several arrays; False if one must be checked by itself."""


def _require_fit(buffers: list[CpuBuffer], place: Place) -> None:
    first = buffers[0].type
    for buffer, device in zip(buffers, place.devices, strict=True):
        if buffer.device is not device or buffer.place.memory_kind != place.memory_kind:
            raise InvalidArgument(
                f"a buffer is on {buffer.device!r} ({buffer.place.memory_kind} memory) where one "
                f"on {device!r} ({place.memory_kind} memory) is needed"
            )
        if buffer.type != first:
            raise InvalidArgument(
                f"the buffers of an array have types {[str(b.type) for b in buffers]}"
            )
        if buffer.is_deleted():
            raise DeletedBuffer(f"the buffer {buffer.type} on {device!r} was deleted or donated")
