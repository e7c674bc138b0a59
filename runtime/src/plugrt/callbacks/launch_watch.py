"""Cancels the other parts of a launch on several devices when one part fails.

If the part of one device ends early, the others wait for it in a collective, until XLA ends the
process. So a Python function that fails in such a launch returns zeros to the program, and the
launch raises the failure when all parts have ended.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable
from typing import TypeVar

from plugrt.errors import Internal, PjrtError

T = TypeVar("T")

FINISHES = 0.5
"""Seconds that the parts may continue with zeros after a failure."""
_SHORTEST, _LONGEST = 0.25, 4.0
"""How many seconds a part waits for the others; XLA ends a process that waits for 40."""


class Watch:
    """The first failure in one launch with ``parts`` parts.

    A loop may continue for as long as a function returns zeros. So after a while `end_together`
    makes the parts wait for each other in their calls of one function. When all have arrived, none
    is in a collective, and all are ended. If one does not arrive, since it does not call that
    function, they continue as before.
    """

    __slots__ = (
        "_calling", "_changed", "_finishes", "_lock", "_patience", "_since", "ending", "failure",
        "parts",
    )  # fmt: skip

    def __init__(self, parts: int, finishes: float = FINISHES, shortest: float = _SHORTEST) -> None:
        self.parts = parts
        self._finishes = finishes
        self.failure: PjrtError | None = None
        self.ending = False
        self._since = 0.0
        self._patience = shortest
        self._calling: Counter[Hashable] = Counter()
        # Not the condition's own `with`, which is Python code: an interrupt may leave it locked.
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)

    def note(self, failure: PjrtError) -> None:
        """Records a failure, unless there was one."""
        with self._lock:
            if self.failure is None:
                self._since = time.monotonic()
                self.failure = failure

    def look(self) -> None:
        """Records a failure that another process reported; there are none with one process."""

    def seconds_since_failure(self) -> float:
        """Seconds since a function failed; 0 if none has."""
        return time.monotonic() - self._since if self.failure is not None else 0.0

    def end_together(self, function: Hashable) -> None:
        """Raises the failure in a call of a function if all parts are in one."""
        assert self.failure is not None
        if time.monotonic() < self._since + self._finishes:
            return
        with self._lock:
            self._calling[function] += 1
            if self._calling[function] == self.parts:
                self.ending = True
                self._changed.notify_all()
            elif not self._changed.wait_for(lambda: self.ending, self._patience):
                self._patience = min(2 * self._patience, _LONGEST)
            self._calling[function] -= 1
            if self.ending:
                raise Internal(self.failure.message)


class WatchedFunction:
    """A Python function that programs call, and that reports failures to one launch at a time.

    ``turn`` is a lock held by that launch.
    """

    __slots__ = ("__weakref__", "turn", "watch")

    def __init__(self) -> None:
        self.watch: Watch | None = None
        self.turn = threading.Lock()

    def call_watched(self, watch: Watch, call: Callable[[], T], blank: Callable[[], T]) -> T:
        """Returns ``call()``, or ``blank()`` if a part of the launch failed before or fails now.

        ``call`` raises a `PjrtError` if it fails. After a failure nothing more is called.
        """
        if watch.failure is None:
            try:
                return call()
            except PjrtError as error:
                watch.note(error)
        watch.end_together(self)
        return blank()
