"""Mutants of arrays on a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mutants.puts import flip
from plugrt.errors import Internal
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk.buffer import BackendBuffer
from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.conformance.mutants.faults import Faults, MutantClient


class _NeverReady:
    """An event that is never ready."""

    def is_ready(self) -> bool:
        return False

    def wait(self) -> None:
        return None


def _read_then_shift() -> Any:
    """Returns a ``to_host`` whose contents change in each call."""
    reads: list[None] = []

    def to_host(self: BackendBuffer) -> Array:
        reads.append(None)
        found = np.roll(BackendBuffer.to_host(self), len(reads))
        found.flags.writeable = False
        return found

    return to_host


def _read_deleted(self: BackendBuffer) -> Array:
    return np.zeros(self.shape, self.dtype) if self.is_deleted() else BackendBuffer.to_host(self)


def _delete_once(self: BackendBuffer) -> None:
    if self.is_deleted():
        raise Internal("deleted twice")
    BackendBuffer.delete(self)


def _wipe(self: BackendBuffer) -> None:
    """Clears freed memory, which earlier reads still show."""
    handle: Any = self._handle
    BackendBuffer.delete(self)
    if handle is not None and handle.flags.writeable:
        handle[...] = 0


def _share_memory() -> Faults:
    """Returns a mutant whose arrays of one type share memory."""
    places: dict[Any, Array] = {}

    def put(self: NumpyBackend, array: Array, device: int) -> Array:
        place = places.setdefault((array.shape, array.dtype), array.copy())
        place[...] = array
        return place

    return Faults(backend={"put": put})


def _writeable(self: BackendBuffer) -> Array:
    return BackendBuffer.to_host(self).copy()


class _ReadyUntilDeleted:
    """An event that reads the state of its deleted array."""

    def __init__(self, buffer: BackendBuffer) -> None:
        self._buffer = buffer

    def is_ready(self) -> bool:
        return not self._buffer.is_deleted()

    def wait(self) -> None:
        return None


def _same_handle(self: BackendBuffer, device: Any) -> BackendBuffer:
    """Returns the array itself instead of a copy."""
    return self


def _copy_shifted(self: NumpyBackend, handle: Array, device: int) -> Array:
    return np.roll(handle, 1)


def _copy_small_floats(self: NumpyBackend, handle: Array, device: int) -> Array:
    """Changes the last element of copies of int16, of 33 elements, on the last device."""
    copy = NumpyBackend.copy(self, handle, device)
    return flip(copy) if copy.dtype == np.int16 and (copy.size, device) == (33, 1) else copy


def _size_of_float64(self: BackendBuffer) -> int:
    """States half of the bytes for matrices of float64."""
    found = int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize
    return found // 2 if self.dtype == np.float64 and len(self.shape) == 2 else found


def _send_ones(
    self: MutantClient, type: Any, copies: Sequence[Any], *rest: Any
) -> Sequence[BackendBuffer]:
    """Delivers ones to another process, whatever was sent."""
    ones = np.ones(type.shape, type.dtype)
    return [MutantClient.buffer_from_host(self, ones, device) for _, device in copies]


def _first_memory(self: BackendBuffer) -> Any:
    return self.device.client.devices()[0].default_memory()


_BUFFERS: Mapping[str, Faults] = {
    "type": Faults(buffer={"shape": property(lambda self: self.type.shape or (1,))}),
    "place": Faults(buffer={"memory": property(_first_memory)}, devices=2),
    "read_only": Faults(buffer={"to_host": _writeable}),
    "read_twice": Faults(buffer={"to_host": _read_then_shift()}),
    "independent": _share_memory(),
    "delete": Faults(buffer={"delete": _delete_once, "__del__": lambda self: None}),
    "delete.read": Faults(buffer={"to_host": _read_deleted}),
    "delete.others": Faults(buffer={"delete": _wipe}),
    "ready": Faults(buffer={"ready_event": lambda self: _NeverReady()}),
    "ready.deleted": Faults(buffer={"ready_event": lambda self: _ReadyUntilDeleted(self)}),
    "size": Faults(buffer={"on_device_size_in_bytes": _size_of_float64}),
    "copy.own_device": Faults(buffer={"copy_to_device": _same_handle}),
    "copy.devices": Faults(backend={"copy": _copy_shifted}, devices=2),
    "copy.devices.dtypes": Faults(backend={"copy": _copy_small_floats}, devices=2),
    "copy.processes": Faults(
        capabilities={"copies_between_processes": True},
        client={"copy_between_processes": _send_ones},
    ),
}  # fmt: skip


MUTANTS: Mapping[str, Faults] = {
    **{f"buffers.{name}": faults for name, faults in _BUFFERS.items()},
}
