"""`plugrt.monitoring`: listeners get events and durations, and can be removed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plugrt import monitoring
from plugrt.errors import ArgumentError


@pytest.fixture(autouse=True)
def _no_listeners() -> Iterator[None]:
    kept = (monitoring.get_event_listeners(), monitoring.get_event_duration_listeners())
    monitoring.clear_event_listeners()
    yield
    monitoring.clear_event_listeners()
    for listener in kept[0]:
        monitoring.register_event_listener(listener)
    for duration in kept[1]:
        monitoring.register_event_duration_secs_listener(duration)


def test_listeners_hear_what_is_recorded() -> None:
    heard: list[object] = []
    monitoring.register_event_listener(lambda event, **kw: heard.append((event, kw)))
    monitoring.register_event_duration_secs_listener(
        lambda event, duration, **kw: heard.append((event, duration, kw))
    )
    monitoring.record_event(monitoring.CACHE_HIT, key="k")
    monitoring.record_event_duration_secs(monitoring.COMPILE, 0.5, name="f")
    assert heard == [(monitoring.CACHE_HIT, {"key": "k"}), (monitoring.COMPILE, 0.5, {"name": "f"})]


def test_unregistered_listeners_hear_nothing() -> None:
    heard: list[str] = []

    def listener(event: str, *args: float, **kwargs: str | int) -> None:
        heard.append(event)

    monitoring.register_event_listener(listener)
    monitoring.register_event_duration_secs_listener(listener)
    monitoring.unregister_event_listener(listener)
    monitoring.unregister_event_duration_listener(listener)
    monitoring.record_event("e")
    monitoring.record_event_duration_secs("d", 1.0)
    assert heard == []
    with pytest.raises(ArgumentError):
        monitoring.unregister_event_listener(listener)
    with pytest.raises(ArgumentError):
        monitoring.unregister_event_duration_listener(listener)


def test_a_listener_may_unregister_itself_while_it_listens() -> None:
    heard: list[str] = []

    def once(event: str, **kwargs: str | int) -> None:
        heard.append(event)
        monitoring.unregister_event_listener(once)

    monitoring.register_event_listener(once)
    monitoring.register_event_listener(lambda event, **kw: heard.append("other"))
    monitoring.record_event("e")
    monitoring.record_event("e")
    assert heard == ["e", "other", "other"]
