"""The lock of the compiled core, which its thread may acquire again."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from plugrt.compiled_core import core, reason

pytestmark = pytest.mark.skipif(core is None, reason=f"no compiled core here: {reason}")


def _in_thread(function: Any) -> Any:
    """Returns what a function returns, or raises, in another thread."""
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
    assert repr(lock) == "<plugrt._core.Lock owner=0 count=0>"
    assert _in_thread(lambda: lock.acquire(False)) is True  # and ends without releasing it
    assert lock.acquire(False) is False


def test_a_lock_waits_for_the_thread_that_has_it() -> None:
    lock, order = core.Lock(), list[str]()
    is_waiting = threading.Event()

    def wait() -> None:
        is_waiting.set()
        with lock:
            order.append("waited")

    thread = threading.Thread(target=wait)
    with lock:
        thread.start()
        is_waiting.wait(60)
        thread.join(0.05)
        order.append("released")
    thread.join(60)
    assert order == ["released", "waited"]


def test_what_threads_do_under_the_lock_is_done_by_one_at_a_time() -> None:
    lock, inside, most = core.Lock(), list[int](), list[int]()

    def work() -> None:
        for i in range(200):
            with lock, lock:
                inside.append(i)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == [1] * 800


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
    """A thread gives up the GIL where it waits alone, so not between a release and what follows."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(60)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_switches_rarely")
def test_a_thread_that_takes_the_lock_again_at_once_does_not_keep_it_from_those_that_wait() -> None:
    lock, waited, rounds = core.Lock(), list[int](), 0

    def wait(number: int) -> None:
        with lock:
            waited.append(number)

    threads = [threading.Thread(target=wait, args=(i,)) for i in range(3)]
    lock.acquire()
    for thread in threads:
        thread.start()
    while len(waited) < len(threads) and rounds < 500:
        rounds += 1
        time.sleep(0.005)  # with the lock: the others run, and find that they have to wait
        lock.release()
        lock.acquire()
    lock.release()
    for thread in threads:
        thread.join(60)
    assert sorted(waited) == [0, 1, 2]
    assert rounds < 500
    assert repr(lock) == "<plugrt._core.Lock owner=0 count=0>"


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals as POSIX has them")
@pytest.mark.usefixtures("_switches_rarely")
@pytest.mark.parametrize("others", [0, 1])
def test_the_lock_is_free_for_others_where_a_signal_ended_the_wait_that_it_was_given_up_to(
    others: int,
) -> None:
    class Interrupt(BaseException):
        pass

    lock, waited = core.Lock(), list[bool]()
    holding, interrupted, released = (threading.Event() for _ in range(3))

    def hold() -> None:
        with lock:
            holding.set()
            time.sleep(0.05)
            lock.release()
            lock.acquire()
            time.sleep(0.05)  # one that waits finds that it is taken again, so that it is the next
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
            interrupted.wait(60)
        released.set()

    def interrupt(*_: object) -> None:
        interrupted.set()
        released.wait(60)
        raise Interrupt

    def wait() -> None:
        with lock:
            waited.append(True)

    before = signal.signal(signal.SIGALRM, interrupt)
    holder = threading.Thread(target=hold, daemon=True)
    waiting = [threading.Thread(target=wait, daemon=True) for _ in range(others)]
    holder.start()
    holding.wait(60)
    for thread in waiting:
        thread.start()
    try:
        with pytest.raises(Interrupt):
            lock.acquire()
    finally:
        signal.signal(signal.SIGALRM, before)
        holder.join(60)
    for thread in waiting:
        thread.join(60)
    assert waited == [True] * others
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
