"""`Turns`: limits a session's launches in flight while other sessions launch, too."""

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

    A backend runs launches in order, so that one session's queue delays all others. If another
    session has launched within the last second, a session has a limited number of launches in
    flight: 1 if the launches are long, up to 64 if they are short.
    """

    def __init__(self, all: Collection[Turns]) -> None:
        self._all = all
        self._last = 0.0
        self._window = 1
        self._pending: deque[Event] = deque(maxlen=_MOST)

    def is_full(self) -> bool:
        """Whether the session must `wait` before it launches."""
        if len(self._all) == 1:
            return False
        now = self._last = time.monotonic()
        recent = any(o is not self and now - o._last <= _RECENT for o in tuple(self._all))
        return recent and len(self._pending) >= self._window

    def wait(self) -> None:
        """Waits until the session may launch."""
        now = time.monotonic()
        while len(self._pending) >= self._window:
            with suppress(PlugrtError):  # reading the result raises it
                self._pending.popleft().wait()
            took, now = time.monotonic() - now, time.monotonic()
            if took < _SHORT:
                self._window = min(2 * self._window, _MOST)
            elif took > _LONG:
                self._window = max(self._window // 2, 1)

    def note(self, event: Event) -> None:
        """Adds a launch, by the event of its end."""
        self._pending.append(event)

    @property
    def are_shared(self) -> bool:
        """Whether there are other sessions."""
        return len(self._all) > 1
