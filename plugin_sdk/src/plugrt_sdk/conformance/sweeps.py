"""Helpers of checks that sweep over many arrays: time limits, and calls in another thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

_SECONDS, _PROCESSOR_SECONDS = 6.0, 2.2
"""The limits of one sweep; a slow library gets fewer arrays of it."""


def within_limits(items: Iterable[T], part: float = 1.0) -> Iterator[T]:
    """Yields items until a sweep's time, or a part of it, is over."""
    until = time.monotonic() + part * _SECONDS
    processor = time.process_time() + part * _PROCESSOR_SECONDS
    for item in items:
        if time.monotonic() > until or time.process_time() > processor:
            return
        yield item


def in_another_thread(work: Callable[[], None]) -> None:
    """Calls a function in a thread of its own; raises its error."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()
