"""`HeldMemory`: the arrays that a backend holds for users, by device."""

from __future__ import annotations

from collections.abc import Iterable

from plugrt_numpy.data_types import Array


class HeldMemory:
    """The bytes of each handle, and the device that it is on.

    Handles are identified by ``id``: so each is removed before it is freed. Called
    from any thread; each step is one operation on a dict.
    """

    def __init__(self) -> None:
        self._held: dict[int, tuple[int, int]] = {}

    def add(self, handle: Array, device: int) -> Array:
        """Counts a new handle, and returns it."""
        self._held[id(handle)] = device, handle.nbytes
        return handle

    def remove(self, handle: Array) -> None:
        """Removes a handle that was deleted or consumed."""
        self._held.pop(id(handle), None)

    def of(self, device: int) -> dict[str, int]:
        """Returns the figures of a device, under PJRT's names."""
        sizes = [size for place, size in self._copy() if place == device]
        return {"bytes_in_use": sum(sizes), "num_allocs": len(sizes)}

    def _copy(self) -> Iterable[tuple[int, int]]:
        return tuple(self._held.values())
