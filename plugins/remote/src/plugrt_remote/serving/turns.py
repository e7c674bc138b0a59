"""`Turns`: limits a session's launches in flight, and divides the device between sessions."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress

from plugrt.errors import PjrtError, PlugrtError
from plugrt.interface import Event
from plugrt_remote.log import logger

_RECENT = 1.0
_SHORT = 0.001
_MOST = 64
_BLOCKED = 10
"""The seconds of a wait after which a warning is logged."""


class Turns:
    """The launches of one session that may not have ended.

    A backend runs launches in order, so that one session's queue delays all others. While another
    session launches, too, each has as many launches in flight as last for the same time: 1 of the
    session with the longest launches, up to 64 of the others. A session alone has up to 4,096, so
    that a client that waits for nothing does not fill the server's memory; only each 64th of these
    is noted.
    """

    def __init__(self, all: Collection[Turns], now: Callable[[], float] = time.monotonic) -> None:
        self._all, self._now = all, now
        self._last = 0.0
        """When the session was last ready to launch."""
        self._end = 0.0
        """When a launch of the session last ended."""
        self._seconds = _SHORT
        """The average time of the session's recent launches on the device."""
        self._pending: deque[Event] = deque(maxlen=_MOST)
        """Those of a session alone stand for 64 launches each."""
        self._unnoted = 0

    def is_full(self) -> bool:
        """Whether the session must `wait` before it launches."""
        self._last = self._now()
        pending, limit = self._pending, self._limit()
        while len(pending) >= _MOST and pending[0].is_ready():
            pending.popleft()
        return len(pending) >= limit

    def wait(self) -> None:
        """Waits until the session may launch."""
        while len(self._pending) >= self._limit():
            begin = self._now()
            with suppress(PlugrtError):  # reading the result raises it
                self._pending.popleft().wait()
            if (seconds := self._now() - begin) > _BLOCKED and len(self._all) > 1:
                logger.warning(
                    "a session waited %.0f s for launches of several sessions: one of them blocks "
                    "the others until it ends (plugrt serve --status shows them)", seconds,
                )  # fmt: skip
        self._last = self._now()

    def _limit(self) -> int:
        if len(self._all) == 1:
            return _MOST
        now = self._now()
        longest = [o._seconds for o in tuple(self._all) if now - o._last <= _RECENT]
        if len(longest) < 2:
            return _MOST
        return min(max(int(max(_SHORT, *longest) / self._seconds), 1), _MOST)

    def is_noted(self) -> bool:
        """Counts a launch, and returns whether to `note` it, or the next that has an event."""
        self._unnoted += 1
        return len(self._all) > 1 or self._unnoted >= _MOST

    def note(self, event: Event) -> None:
        """Adds a launch, by the event of its end."""
        self._unnoted = 0
        self._pending.append(event)
        if len(self._all) == 1:
            return
        begin = self._last

        def end(_: PjrtError | None) -> None:
            now = self._now()
            before = max(begin, self._end, *[o._end for o in tuple(self._all)])
            self._end = now
            self._seconds += (max(now - before, 1e-6) - self._seconds) / 8

        event.on_ready(end)
