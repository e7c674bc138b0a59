"""Listeners for events and durations, and recording for them.

With no listener registered, recording costs one truth test of an empty list.
"""

from __future__ import annotations

from typing import Protocol

from plugrt.errors import ArgumentError, ArgumentTypeError


class EventListener(Protocol):
    """What `register_event_listener` takes."""

    def __call__(self, event: str, /, **kwargs: str | int) -> None: ...


class DurationListener(Protocol):
    """What `register_event_duration_secs_listener` takes."""

    def __call__(self, event: str, duration: float, /, **kwargs: str | int) -> None: ...


_event_listeners: list[EventListener] = []
_duration_listeners: list[DurationListener] = []
listening = _duration_listeners
"""Non-empty if a duration listener is registered: callers then read the clock."""


def record_event(event: str, **kwargs: str | int) -> None:
    """Calls every event listener with ``event`` and ``kwargs``.

    Raises what a listener raises.
    """
    if _event_listeners:
        for listener in tuple(_event_listeners):
            listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Calls every duration listener with ``event``, ``duration`` in seconds, and ``kwargs``.

    Raises what a listener raises.
    """
    if _duration_listeners:
        for listener in tuple(_duration_listeners):
            listener(event, duration, **kwargs)


def register_event_listener(callback: EventListener) -> None:
    """Calls ``callback(event, **kwargs)`` at each event from now on.

    Raises `ArgumentTypeError` for what is no function.
    """
    _require_callable(callback)
    _event_listeners.append(callback)


def register_event_duration_secs_listener(callback: DurationListener) -> None:
    """Calls ``callback(event, seconds, **kwargs)`` at each duration from now on.

    Raises `ArgumentTypeError` for what is no function.
    """
    _require_callable(callback)
    _duration_listeners.append(callback)


def _require_callable(callback: object) -> None:
    if not callable(callback):
        raise ArgumentTypeError(f"a listener is a function of an event; got {callback!r:.60}")


def get_event_listeners() -> list[EventListener]:
    """Returns the registered event listeners."""
    return list(_event_listeners)


def get_event_duration_listeners() -> list[DurationListener]:
    """Returns the registered duration listeners."""
    return list(_duration_listeners)


def unregister_event_listener(callback: EventListener) -> None:
    """Stops calling ``callback``; `ArgumentError` if it is not registered."""
    _require_callable(callback)
    if callback not in _event_listeners:
        raise ArgumentError(f"{callback!r} is not a registered event listener")
    _event_listeners.remove(callback)


def unregister_event_duration_listener(callback: DurationListener) -> None:
    """Stops calling ``callback``; `ArgumentError` if it is not registered."""
    _require_callable(callback)
    if callback not in _duration_listeners:
        raise ArgumentError(f"{callback!r} is not a registered duration listener")
    _duration_listeners.remove(callback)


def clear_event_listeners() -> None:
    """Forgets every listener of both kinds."""
    _event_listeners.clear()
    _duration_listeners.clear()
