"""The lock of the compiled core, which its thread may acquire again."""

from __future__ import annotations

import signal
import threading
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
