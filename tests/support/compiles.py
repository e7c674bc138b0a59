"""Counts plugrt's traces and compilations."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

from plugrt import monitoring


@contextlib.contextmanager
def counting() -> Iterator[Counter[str]]:
    """Yields a counter of events with durations, such as ``counter[monitoring.COMPILE]``."""
    counter: Counter[str] = Counter()

    def listen(event: str, duration: float, /, **_: str | int) -> None:
        counter[event] += 1

    monitoring.register_event_duration_secs_listener(listen)
    try:
        yield counter
    finally:
        monitoring.unregister_event_duration_listener(listen)


def compilations(f: Any, *calls: tuple[Any, ...]) -> list[int]:
    """Returns how many programs each call compiled."""
    result = []
    for args in calls:
        with counting() as counts:
            f(*args)
        result.append(counts[monitoring.COMPILE])
    return result
