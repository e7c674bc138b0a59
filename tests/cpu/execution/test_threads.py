"""Eight threads at once: for a second, and for a minute by ``nox -s threads``.

Half of the minute is for warming up; in the other half memory must not grow.
"""

from __future__ import annotations

import ctypes
import gc
import random
import resource
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax
from plugrt.errors import PjrtError, ShapeError
from support.behaviour import behaviour
from support.effort import EFFORT

COUNT = 8
X = np.arange(12, dtype=np.float32).reshape(3, 4)
KIND = plugrt.ShapeDtypeStruct(X.shape, X.dtype)


class Mine(Exception):
    """Raised by the traced function."""


@plugrt.jit
def shared(x: Any, n: Any) -> Any:
    return lax.fori_loop(0, 3, lambda _, v: v + n, x)


consume = plugrt.jit(lambda x: x + 1, donate_argnums=0)


def raise_mine(x: Any) -> Any:
    raise Mine


def fail(x: Any) -> Any:
    raise Mine


def negate(x: Any) -> Any:
    return -x


class Calls:
    """The calls of one thread, each with a check, and its own random numbers."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.own = plugrt.jit(lambda x, n: x * n + seed, static_argnums=1)

    def number(self) -> int:
        return self.random.randrange(1, 1000)

    def the_same_function(self) -> None:
        n = self.number()
        np.testing.assert_array_equal(shared(X, np.float32(n)), X + 3 * n)

    def its_own_function(self) -> None:
        n, seed = self.random.randrange(4), float(np.asarray(self.own(np.zeros(3), 0))[0])
        np.testing.assert_array_equal(self.own(X, n), X * n + np.float32(seed))

    def donation(self) -> None:
        x = plugrt.device_put(X + self.number())
        expected = np.asarray(x) + 1
        np.testing.assert_array_equal(consume(x), expected)
        assert x.is_deleted()

    def tracing(self) -> None:
        n = self.number()
        found = plugrt.jit(lambda x: xp.sum(x) + n).lower(X).out_info
        assert found.shape == ()

    def operators(self) -> None:
        x, n = plugrt.device_put(X), self.number()
        np.testing.assert_array_equal(x * 2 + n, X * 2 + n)
        np.testing.assert_array_equal(x[1], X[1])

    def exceptions(self) -> None:
        with pytest.raises(Mine):
            plugrt.jit(raise_mine)(X)
        with pytest.raises(ShapeError):
            plugrt.device_put(X) + np.ones(5, np.float32)

    def clearing(self) -> None:
        if self.random.random() < 0.02:
            plugrt.clear_caches()

    def callbacks(self) -> None:
        n = self.random.randrange(3)
        f = plugrt.jit(lambda x, n: plugrt.pure_callback(negate, KIND, x + n), static_argnums=1)
        np.testing.assert_array_equal(f(X, n), -(X + n))
        with pytest.raises((PjrtError, Mine)):
            np.asarray(plugrt.jit(lambda x: plugrt.pure_callback(fail, KIND, x))(X))


def steps_of(calls: Calls) -> list[Callable[[], None]]:
    """Returns the calls that run on the platform under test."""
    client = plugrt.get_backend()
    steps = [calls.the_same_function, calls.its_own_function, calls.donation, calls.tracing,
             calls.operators, calls.exceptions, calls.clearing]  # fmt: skip
    # XLA's library runs callbacks on its compute threads, where they can deadlock.
    if client.capabilities.host_callbacks and client.platform_version.startswith("jaxlib"):
        steps.append(calls.callbacks)
    return steps


def run(seconds: float) -> Counter[str]:
    """Runs eight threads; returns the counts of calls, or raises a thread's exception."""
    done: list[Counter[str]] = []
    failed: list[BaseException] = []
    until = time.monotonic() + seconds

    def work(seed: int) -> None:
        calls, count = Calls(seed), Counter[str]()
        steps = steps_of(calls)
        try:
            while time.monotonic() < until or not count:
                step = calls.random.choice(steps)
                step()
                count[step.__name__] += 1
        except BaseException as error:  # noqa: BLE001  # raised below
            failed.append(error)
        done.append(count)

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(COUNT)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 100)
    assert not any(thread.is_alive() for thread in threads), "a deadlock"
    if failed:
        raise failed[0]
    return sum(done, Counter())


MOST_GROWTH = 150e3
"""The allowed growth of memory in the run of a minute, in bytes per second.

The pools of XLA and Python grow by 70 kB; a leak of 100 kB more is found.
"""


def settle() -> int:
    """Clears all caches, and returns the resident memory of the process in bytes."""
    plugrt.effects_barrier()
    plugrt.clear_caches()
    gc.collect()
    # Freed memory must not count: glibc can return it to the system.
    getattr(ctypes.CDLL(None), "malloc_trim", int)(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@behaviour(
    25,
    "eight threads call the same and other functions, donate, trace, clear caches and meet"
    " exceptions: right results, no deadlock, no arrays left",
)
def test_eight_threads_at_once() -> None:
    is_long = EFFORT >= 60
    run(EFFORT / 2 if is_long else 0.2)  # makes the objects that are made once
    before, arrays = settle(), len(plugrt.live_arrays())
    started = time.monotonic()
    count = run(EFFORT / 2 if is_long else 1.0 * EFFORT)
    seconds = time.monotonic() - started
    grown = settle() - before
    assert len(plugrt.live_arrays()) <= arrays
    print(f"{sum(count.values())} calls in {seconds:.0f} s, {grown / 1e6:+.1f} MB: {dict(count)}")
    # A second is too short to distinguish a leak from memory allocated once.
    assert grown < (MOST_GROWTH * seconds if is_long else 60e6)
