"""`BoundedCache`: its bound, the thread that makes a value, and clearing."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from plugrt.base.bounded_cache import BoundedCache


def test_one_of_several_threads_makes_a_value() -> None:
    class Missed(BoundedCache[str, object]):
        def get(self, key: str, default: Any = None) -> Any:
            value = super().get(key, default)
            if threading.get_ident() not in missed:
                missed.add(threading.get_ident())
                together.wait()  # all threads miss before one makes the value
            return value

    cache, missed = Missed(3), set[int]()
    makers = []
    together = threading.Barrier(8)

    def make() -> object:
        makers.append(threading.get_ident())
        return object()

    def ask(_: int) -> object:
        return cache.get_or_make("key", make)

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(8)))) == 1
    assert len(makers) == 1


def test_a_value_that_failed_is_made_again() -> None:
    cache: BoundedCache[str, int] = BoundedCache(3)
    with pytest.raises(ZeroDivisionError):
        cache.get_or_make("key", lambda: 1 // 0)
    assert cache.get_or_make("key", lambda: 1) == 1
