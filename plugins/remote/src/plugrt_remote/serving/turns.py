"""`Turns`: bounds the launches in flight of a session while other sessions launch, too."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection
from contextlib import suppress

from plugrt.errors import PlugrtError
from plugrt.interface import Event

_RECENT = 1.0
_SHORT, _LONG = 0.001, 0.01
_MOST = 64


class Turns:
    """The launches of one session that may not have ended.

    A backend runs launches in order, so that one session's queue delays all others. While another
    session has launched within a second, a session waits for its own before it launches the next:
    for all but one where they are long, and for all but 64 where they are short.
    """

    def __init__(self, all: Collection[Turns]) -> None:
        self._all = all
        self._last = 0.0
        self._window = 1
        self._pending: deque[Event] = deque(maxlen=_MOST)

    def wait(self) -> None:
        """Waits until the session may launch."""
        if len(self._all) == 1:
            return
        now = self._last = time.monotonic()
        if all(other is self or now - other._last > _RECENT for other in tuple(self._all)):
            return
        while len(self._pending) >= self._window:
            with suppress(PlugrtError):  # whoever reads the result gets it
                self._pending.popleft().wait()
            took, now = time.monotonic() - now, time.monotonic()
            if took < _SHORT:
                self._window = min(2 * self._window, _MOST)
            elif took > _LONG:
                self._window = max(self._window // 2, 1)

    def note(self, event: Event) -> None:
        """Notes the end of a launch."""
        self._pending.append(event)

    @property
    def are_shared(self) -> bool:
        """Whether there are other sessions."""
        return len(self._all) > 1
