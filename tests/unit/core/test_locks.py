"""The reentrant lock of the compiled core."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from plugrt.native.native_core import core
from support.native_core import runs_in_c

pytestmark = runs_in_c
needs_signals = pytest.mark.skipif(
    not hasattr(signal, "pthread_kill"), reason="signals as POSIX has them"
)


FREE = "<plugrt._core.Lock owner=0 count=0 waiting=0>"


def _await_waiting(lock: Any, count: int) -> None:
    """Returns once that many threads wait for a lock."""
    end = time.perf_counter() + 60
    while f"waiting={count}>" not in repr(lock):
        assert time.perf_counter() < end
        time.sleep(0.001)


def _in_thread(function: Any) -> Any:
    """Runs a function in another thread; returns its result or exception."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(function())
        except RuntimeError as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    return found[0]


def test_a_thread_has_the_lock_until_it_released_it_as_often_as_it_acquired_it() -> None:
    lock = core.Lock()
    with lock:
        assert lock.acquire() is lock.acquire(blocking=False) is True
        assert "count=3" in repr(lock)
        for _ in range(2):
            assert _in_thread(lambda: lock.acquire(False)) is False
            lock.release()
        assert isinstance(_in_thread(lock.release), RuntimeError)
        assert _in_thread(lambda: lock.acquire(False)) is False
    assert repr(lock) == FREE
    assert _in_thread(lambda: lock.acquire(False)) is True  # the thread ends without a release
    assert lock.acquire(False) is False


def test_a_lock_waits_for_the_thread_that_has_it() -> None:
    lock, order = core.Lock(), list[str]()

    def wait() -> None:
        with lock:
            order.append("waited")

    thread = threading.Thread(target=wait)
    with lock:
        thread.start()
        _await_waiting(lock, 1)
        order.append("released")
    thread.join(60)
    assert order == ["released", "waited"]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="signals as POSIX has them")
def test_a_signal_ends_the_wait_for_a_lock_whose_handler_raises() -> None:
    class Interrupt(BaseException):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupt

    lock, release = core.Lock(), threading.Event()

    def hold() -> None:
        with lock:
            holding.set()
            release.wait(60)

    holding = threading.Event()
    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait(60)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Interrupt):
            lock.acquire()
    finally:
        signal.signal(signal.SIGALRM, before)
        release.set()
        thread.join(60)
    assert "count=0" in repr(lock)


@pytest.fixture
def _switches_rarely() -> Iterator[None]:
    """Threads release the GIL only in waits, and not between a release and the next statement."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(60)
    yield
    sys.setswitchinterval(before)


class Interrupt(BaseException):
    """Raised by signal handlers here."""


@pytest.fixture
def handle() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Sets this thread's action for SIGALRM."""
    before = signal.getsignal(signal.SIGALRM)
    yield lambda function: signal.signal(signal.SIGALRM, lambda *_: function())
    signal.signal(signal.SIGALRM, before)


def _signal_main() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)


@needs_signals
@pytest.mark.parametrize("raises", [False, True])
def test_a_handler_may_wait_for_threads_that_need_the_lock_that_it_interrupted_the_wait_for(
    handle: Any, raises: bool
) -> None:
    lock, holding, taken = core.Lock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            holding.set()
            _await_waiting(lock, 1)
            _signal_main()
            time.sleep(0.05)
        with lock:
            taken.set()

    def wait_for_it() -> None:
        assert taken.wait(10)
        if raises:
            raise Interrupt

    handle(wait_for_it)
    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    holding.wait(60)
    if raises:
        with pytest.raises(Interrupt):
            lock.acquire()
    else:
        assert lock.acquire()
        assert _in_thread(lambda: lock.acquire(False)) is False
        lock.release()
    holder.join(60)
    assert repr(lock) == FREE


@needs_signals
@pytest.mark.usefixtures("_switches_rarely")
def test_a_thread_that_a_signal_reaches_as_it_is_given_the_lock_has_it(handle: Any) -> None:
    lock, holding, order = core.Lock(), threading.Event(), list[str]()

    def hold() -> None:
        with lock:
            holding.set()
            _await_waiting(lock, 1)
            _signal_main()
            end = time.perf_counter() + 0.05
            while time.perf_counter() < end:  # holds the GIL; the main thread waits for it
                pass
        order.append("released")

    def interrupt() -> None:
        order.append("handled")
        raise Interrupt

    handle(interrupt)
    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    holding.wait(60)
    with pytest.raises(Interrupt):
        lock.acquire()  # the handler runs after the release
    holder.join(60)
    assert order == ["released", "handled"]
    assert _in_thread(lambda: lock.acquire(False)) is False
    lock.release()
    assert _in_thread(lambda: lock.acquire(False)) is True


def test_wrong_uses_of_a_lock_are_refused() -> None:
    lock = core.Lock()
    with pytest.raises(RuntimeError, match="un-acquired"):
        lock.release()
    wrongs: tuple[tuple[Any, dict[str, Any]], ...] = (
        (core.Lock, {"a": 1}),
        (lock.acquire, {"timeout": 1}),
        (lock.acquire, {"blocking": True, "of": 1}),
    )
    for function, wrong in wrongs:
        with pytest.raises(TypeError):
            function(**wrong)
    with pytest.raises(TypeError):
        core.Lock(1)


def test_three_threads_that_keep_taking_the_lock_all_get_it() -> None:
    lock, counts, stop = core.Lock(), [0, 0, 0], False

    def take(number: int) -> None:
        while not stop:
            with lock:
                counts[number] += 1
                time.sleep(0)  # lets the others run into the lock

    threads = [threading.Thread(target=take, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(1)
    stop = True
    for thread in threads:
        thread.join(60)
    assert min(counts) * 10 > max(counts)
