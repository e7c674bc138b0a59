"""`plugrt_cpu.waiter`: the thread on which callbacks of pending arrays are made."""

from __future__ import annotations

import os
import threading

import pytest

from plugrt_cpu.waiter import Waiter


class Step:
    """Ready when told; keeps where it was finished."""

    def __init__(self, order: list[Step], ready: bool = False) -> None:
        self.ready, self.begun = threading.Event(), threading.Event()
        self.order = order
        self.thread: str | None = None
        if ready:
            self.ready.set()

    def is_ready(self) -> bool:
        return self.ready.is_set()

    def finish(self) -> None:
        self.begun.set()
        self.ready.wait()
        self.thread = threading.current_thread().name
        self.order.append(self)


def test_one_thread_finishes_what_is_ready_first() -> None:
    waiter, order = Waiter(), list[Step]()
    blocking, pending, ready = Step(order), Step(order), Step(order, ready=True)
    waiter.add(blocking)
    blocking.begun.wait()
    waiter.add(pending)
    waiter.add(ready)
    blocking.ready.set()
    pending.begun.wait()
    pending.ready.set()
    waiter.close()
    assert order == [blocking, ready, pending]
    assert {step.thread for step in order} == {"plugrt-cpu-events"}


def test_closing_waits_and_then_callers_wait_themselves() -> None:
    waiter, order = Waiter(), list[Step]()
    pending = Step(order)
    waiter.add(pending)
    closing = threading.Thread(target=waiter.close)
    closing.start()
    pending.ready.set()
    closing.join()
    assert order == [pending]
    late = Step(order, ready=True)
    waiter.add(late)
    assert late.thread == threading.current_thread().name


@pytest.mark.filterwarnings("ignore:os.fork")
def test_a_forked_child_has_a_thread_of_its_own() -> None:
    from plugrt_cpu import waiter

    order: list[Step] = []
    before = Step(order, ready=True)
    waiter.finish_when_ready(before)
    child = os.fork()
    if child == 0:
        done = threading.Event()
        step = Step(order, ready=True)
        finish = step.finish
        step.finish = lambda: (finish(), done.set())  # type: ignore[method-assign,assignment]
        waiter.finish_when_ready(step)
        os._exit(0 if done.wait(60) else 1)
    assert os.waitpid(child, 0)[1] == 0
