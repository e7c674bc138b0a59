"""`CpuEvent`: when the contents of jaxlib arrays are ready."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plugrt.errors import DeletedBuffer, PjrtError
from plugrt.interface import Event
from plugrt.interface.checks import require_callback
from plugrt.lifetime.waiter import ProcessWaiter
from plugrt_cpu import adapter
from plugrt_cpu.errors import JAXLIB_ERRORS, translate

_waiter = ProcessWaiter("plugrt-cpu-events")


class CpuEvent(Event):
    """Completion of the computation of an array.

    jaxlib has no such object in Python: the event queries the array. An array that was deleted or
    donated meanwhile counts as ready, since there is nothing to wait for.
    """

    __slots__ = ("_raw",)

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def is_ready(self) -> bool:
        try:
            return bool(self._raw.is_deleted() or self._raw.is_ready())
        except JAXLIB_ERRORS:  # deleted in between
            return True

    def wait(self) -> None:
        try:
            adapter.wait_unless_forked(self._raw)
        except JAXLIB_ERRORS as error:
            translated = translate(error)
            if not isinstance(translated, DeletedBuffer):
                raise translated from error

    def on_ready(self, callback: Callable[[PjrtError | None], None]) -> None:
        require_callback(callback)
        if self.is_ready():
            self._call(callback)
        else:
            _waiter.add(_Callback(self, callback))

    def _call(self, callback: Callable[[PjrtError | None], None]) -> None:
        error: PjrtError | None = None
        try:
            self.wait()
        except PjrtError as failure:
            error = failure
        callback(error)


class _Callback:
    """An event, and the callback for its completion."""

    __slots__ = ("_callback", "_event")

    def __init__(self, event: CpuEvent, callback: Callable[[PjrtError | None], None]) -> None:
        self._event = event
        self._callback = callback

    def is_ready(self) -> bool:
        return self._event.is_ready()

    def finish(self) -> None:
        self._event._call(self._callback)
