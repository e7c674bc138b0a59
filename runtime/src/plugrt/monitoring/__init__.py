"""Listeners for events and durations: plugrt's steps and their durations; and timelines.

The functions are those of ``jax.monitoring``; `timeline` is plugrt's own. With no listener
registered, recording costs one truth test of an empty list, and launches are not looked at.
"""

from __future__ import annotations

from plugrt.monitoring.listeners import (
    DurationListener,
    EventListener,
    clear_event_listeners,
    get_event_duration_listeners,
    get_event_listeners,
    record_event,
    record_event_duration_secs,
    register_event_duration_secs_listener,
    register_event_listener,
    unregister_event_duration_listener,
    unregister_event_listener,
)
from plugrt.monitoring.names import (
    AWAIT,
    CACHE_HIT,
    CACHE_MISS,
    CLIENT_CREATED,
    COMPILE,
    DEVICE_PUT,
    LAUNCH,
    LOWER,
    PLUGIN_LOAD,
    READ,
    TRACE,
)
from plugrt.monitoring.trace_events import timeline

__all__ = [
    "AWAIT",
    "CACHE_HIT",
    "CACHE_MISS",
    "CLIENT_CREATED",
    "COMPILE",
    "DEVICE_PUT",
    "LAUNCH",
    "LOWER",
    "PLUGIN_LOAD",
    "READ",
    "TRACE",
    "DurationListener",
    "EventListener",
    "clear_event_listeners",
    "get_event_duration_listeners",
    "get_event_listeners",
    "record_event",
    "record_event_duration_secs",
    "register_event_duration_secs_listener",
    "register_event_listener",
    "timeline",
    "unregister_event_duration_listener",
    "unregister_event_listener",
]
