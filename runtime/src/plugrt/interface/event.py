"""`Event`: the completion of asynchronous work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from plugrt.errors import PjrtError
from plugrt.interface.checks import require_callback


class Event(ABC):
    """The completion of asynchronous work; its error, if any, is raised here."""

    __slots__ = ()

    @abstractmethod
    def is_ready(self) -> bool:
        """Returns whether the work has ended, successfully or not. Never blocks."""

    @abstractmethod
    def wait(self) -> None:
        """Blocks until the work has ended; raises its `PjrtError` if it failed."""

    @abstractmethod
    def on_ready(self, callback: Callable[[PjrtError | None], None]) -> None:
        """Calls ``callback(error or None)`` exactly once, now or later, on any thread."""


class ReadyEvent(Event):
    """An event that is already complete, for synchronous backends."""

    __slots__ = ("_error",)

    def __init__(self, error: PjrtError | None = None) -> None:
        self._error = error

    def is_ready(self) -> bool:
        return True

    def wait(self) -> None:
        if self._error is not None:
            raise self._error

    def on_ready(self, callback: Callable[[PjrtError | None], None]) -> None:
        require_callback(callback)
        callback(self._error)
