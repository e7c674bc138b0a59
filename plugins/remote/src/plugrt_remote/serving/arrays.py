"""`SessionArrays`: the arrays of one session, by the numbers that its client chose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plugrt.errors import DeletedBuffer, InvalidArgument, ResourceExhausted
from plugrt_remote import wire
from plugrt_remote.values import ProtocolError

MOST_ARRAYS = 1 << 20


class Failed:
    """Stands for an array whose computation failed, and holds the error."""

    __slots__ = ("packed",)

    def __init__(self, error: BaseException) -> None:
        self.packed = wire.pack_error(error)


class SessionArrays:
    """Arrays of at most ``most`` bytes on devices (0: without a limit)."""

    def __init__(self, most: int) -> None:
        self.held: dict[int, Any] = {}
        self.bytes = 0
        self._most = most
        self._sizes: dict[int, int] = {}

    def add(self, number: int, array: Any, size: int) -> None:
        """Adds an array, or a `Failed` with the size 0."""
        if len(self.held) >= MOST_ARRAYS:
            raise ProtocolError(f"a client has {MOST_ARRAYS} arrays at most")
        self.held[number] = array
        if size:
            self._sizes[number] = size
            self.bytes += size

    def require_room(self, size: int) -> None:
        """Raises `ResourceExhausted` if ``size`` more bytes exceed the session's limit."""
        if self._most and self.bytes + size > self._most:
            raise ResourceExhausted(
                f"the session has {self.bytes} bytes on the server's devices, and {size} more "
                f"exceed its limit of {self._most}; drop arrays, or have the server started with "
                "another --session-bytes"
            )

    def make(self, number: int, function: Callable[[], Any], size: int = 0) -> None:
        """Adds the result of ``function``, or its error."""
        try:
            self.require_room(size)
            made = function()
        except Exception as error:  # noqa: BLE001 any error of a backend is the result
            made, size = Failed(error), 0
        self.add(number, made, size)

    def pop(self, number: int) -> Any:
        """Removes an array, and returns it; returns None if there is none."""
        self.bytes -= self._sizes.pop(number, 0)
        return self.held.pop(number, None)

    def get(self, number: int, index: int = 0) -> Any:
        """Returns the array of that number; raises its error, or `DeletedBuffer`."""
        held = self.held.get(number)
        if held is None:
            raise DeletedBuffer(f"there is no array {number}: it was deleted or donated")
        if type(held) is Failed:
            raise wire.unpack_error(held.packed)
        if index >= len(held):
            raise InvalidArgument(f"the array {number} has {len(held)} parts, and no part {index}")
        return held

    def clear(self) -> None:
        """Removes all arrays."""
        self.held.clear()
        self._sizes.clear()
        self.bytes = 0
