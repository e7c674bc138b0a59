"""Listeners for events, durations, time spans and scalars, and recording for them.

Without a registered listener, recording costs one truth test of an empty list. If a listener
raises, the log names it with its traceback; the recorded step continues, unlike in JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from plugrt.base.logger import get_logger
from plugrt.errors import ArgumentError, ArgumentTypeError

logger = get_logger(__package__)


class EventListener(Protocol):
    """A callback for `register_event_listener`."""

    def __call__(self, event: str, /, **kwargs: str | int) -> None: ...


class DurationListener(Protocol):
    """A callback for `register_event_duration_secs_listener`."""

    def __call__(self, event: str, duration: float, /, **kwargs: str | int) -> None: ...


class TimeSpanListener(Protocol):
    """A callback for `register_event_time_span_listener`."""

    def __call__(
        self, event: str, start_time: float, end_time: float, /, **kwargs: str | int
    ) -> None: ...


class ScalarListener(Protocol):
    """A callback for `register_scalar_listener`."""

    def __call__(self, event: str, value: float, /, **kwargs: str | int) -> None: ...


# Process-wide: listeners are registered for the process, as in JAX.
_event_listeners: list[EventListener] = []
# Process-wide: listeners are registered for the process, as in JAX.
_duration_listeners: list[DurationListener] = []
# Process-wide: listeners are registered for the process, as in JAX.
_time_span_listeners: list[TimeSpanListener] = []
# Process-wide: listeners are registered for the process, as in JAX.
_scalar_listeners: list[ScalarListener] = []
listening = _duration_listeners
"""Non-empty if a duration listener is registered: callers then read the clock."""
of_all_kinds: tuple[list[Any], ...] = (
    _event_listeners,
    _duration_listeners,
    _time_span_listeners,
    _scalar_listeners,
)
"""``any(of_all_kinds)`` is true if a listener of any kind is registered."""


def _tell(listeners: list[Any], event: str, *values: float, **kwargs: str | int) -> None:
    for listener in tuple(listeners):
        try:
            listener(event, *values, **kwargs)
        except Exception:  # # the program continues
            logger.exception("the listener %r raised at %s, which continues", listener, event)


def record_event(event: str, **kwargs: str | int) -> None:
    """Calls every event listener with ``event`` and ``kwargs``.

    Raises nothing: a listener's error is logged.
    """
    if _event_listeners:
        _tell(_event_listeners, event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Calls every duration listener with ``event``, ``duration`` in seconds, and ``kwargs``.

    Raises nothing: a listener's error is logged.
    """
    if _duration_listeners:
        _tell(_duration_listeners, event, duration, **kwargs)


def record_event_time_span(
    event: str, start_time: float, end_time: float, **kwargs: str | int
) -> None:
    """Calls every time span listener with both ends, in seconds since the epoch, and ``kwargs``.

    Raises nothing: a listener's error is logged.
    """
    if _time_span_listeners:
        _tell(_time_span_listeners, event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float, **kwargs: str | int) -> None:
    """Calls every scalar listener with ``event``, ``value`` and ``kwargs``.

    Raises nothing: a listener's error is logged.
    """
    if _scalar_listeners:
        _tell(_scalar_listeners, event, value, **kwargs)


def register_event_listener(callback: EventListener) -> None:
    """Calls ``callback(event, **kwargs)`` at each event from now on.

    Raises `ArgumentTypeError` if it is not callable.
    """
    _register(_event_listeners, callback)


def register_event_duration_secs_listener(callback: DurationListener) -> None:
    """Calls ``callback(event, seconds, **kwargs)`` at each duration from now on.

    Raises `ArgumentTypeError` if it is not callable.
    """
    _register(_duration_listeners, callback)


def register_event_time_span_listener(callback: TimeSpanListener) -> None:
    """Calls ``callback(event, start, end, **kwargs)`` at each time span from now on.

    Raises `ArgumentTypeError` if it is not callable.
    """
    _register(_time_span_listeners, callback)


def register_scalar_listener(callback: ScalarListener) -> None:
    """Calls ``callback(event, value, **kwargs)`` at each scalar from now on.

    Raises `ArgumentTypeError` if it is not callable.
    """
    _register(_scalar_listeners, callback)


def _register(listeners: list[Any], callback: Callable[..., None]) -> None:
    _require_callable(callback)
    listeners.append(callback)


def _require_callable(callback: object) -> None:
    if not callable(callback):
        raise ArgumentTypeError(f"a listener is a function of an event; got {callback!r:.60}")


def get_event_listeners() -> list[EventListener]:
    """Returns the registered event listeners."""
    return list(_event_listeners)


def get_event_duration_listeners() -> list[DurationListener]:
    """Returns the registered duration listeners."""
    return list(_duration_listeners)


def get_event_time_span_listeners() -> list[TimeSpanListener]:
    """Returns the registered time span listeners."""
    return list(_time_span_listeners)


def get_scalar_listeners() -> list[ScalarListener]:
    """Returns the registered scalar listeners."""
    return list(_scalar_listeners)


def unregister_event_listener(callback: EventListener) -> None:
    """Stops calling ``callback``; `ArgumentError` if it is not registered."""
    _unregister(_event_listeners, callback, "event")


def unregister_event_duration_listener(callback: DurationListener) -> None:
    """Stops calling ``callback``; `ArgumentError` if it is not registered."""
    _unregister(_duration_listeners, callback, "duration")


def unregister_event_time_span_listener(callback: TimeSpanListener) -> None:
    """Stops calling ``callback``; `ArgumentError` if it is not registered."""
    _unregister(_time_span_listeners, callback, "time span")


def unregister_scalar_listener(callback: ScalarListener) -> None:
    """Stops calling ``callback``; `ArgumentError` if it is not registered."""
    _unregister(_scalar_listeners, callback, "scalar")


def _unregister(listeners: list[Any], callback: Callable[..., None], kind: str) -> None:
    _require_callable(callback)
    if callback not in listeners:
        raise ArgumentError(f"{callback!r} is not a registered {kind} listener")
    listeners.remove(callback)


def clear_event_listeners() -> None:
    """Unregisters all listeners of all kinds."""
    for listeners in of_all_kinds:
        listeners.clear()
