"""`plugrt.lifetime.waiter`: the thread that waits for steps and finishes each one."""

from __future__ import annotations

import os
import threading
import weakref

import pytest

from plugrt.lifetime.waiter import ProcessWaiter, Waiter


class Step:
    """A step that is ready on request, and records itself when finished."""

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


class Forgetful(Step):
    """A step that does not record itself."""

    def finish(self) -> None:
        self.ready.wait()


def test_one_thread_finishes_what_is_ready_first() -> None:
    waiter, order = Waiter("of a test"), list[Step]()
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
    assert {step.thread for step in order} == {"of a test"}


def test_closing_waits_and_then_callers_wait_themselves() -> None:
    waiter, order = Waiter("of a test"), list[Step]()
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


def test_nothing_is_kept_that_is_finished() -> None:
    waiter, freed = Waiter("of a test"), threading.Event()
    step = Forgetful([], ready=True)
    weakref.finalize(step, freed.set)
    waiter.add(step)
    del step
    assert freed.wait(60)
    waiter.close()


@pytest.mark.parametrize("hook", ["shows", "none", "raises"])
def test_exceptions_of_steps_are_shown_and_the_thread_continues(
    hook: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []

    def show(told: threading.ExceptHookArgs) -> None:
        shown.append(repr(told.exc_value))
        if hook == "raises":
            raise ValueError("I/O operation on closed file")  # as with a closed stderr

    monkeypatch.setattr(threading, "excepthook", None if hook == "none" else show)
    waiter, order = Waiter("of a test"), list[Step]()
    broken, after = Step(order, ready=True), Step(order, ready=True)

    def fail() -> None:
        raise KeyError("of a test")

    broken.finish = fail  # type: ignore[method-assign]
    waiter.add(broken)
    waiter.add(after)
    waiter.close()
    waiter.add(broken)  # finished at once, on this thread
    assert order == [after]
    assert shown == ["KeyError('of a test')"] * 2 * (hook != "none")
    assert ("KeyError: 'of a test'" in capsys.readouterr().err) == (hook == "none")


@pytest.mark.filterwarnings("ignore:os.fork")
def test_a_forked_child_has_a_thread_of_its_own() -> None:
    order: list[Step] = []
    waiter = ProcessWaiter("of a test")
    before = Step(order, ready=True)
    waiter.add(before)
    child = os.fork()
    if child == 0:
        done = threading.Event()
        step = Step(order, ready=True)
        finish = step.finish
        step.finish = lambda: (finish(), done.set())  # type: ignore[method-assign,assignment]
        waiter.add(step)
        os._exit(0 if done.wait(60) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_further_thread_starts_only_when_nothing_is_taken_for_some_time() -> None:
    order = list[Step]()
    waiter = Waiter("of a test", threads=3, patience=100)
    for _ in range(20):  # others finish it before the waiter's thread does
        step = Step(order)
        waiter.add(step)
        step.ready.set()
    waiter.close()
    assert len(waiter._serving) == 1
    waiter = Waiter("of a test", threads=3, patience=0.001)
    steps = [Step(order) for _ in range(4)]
    for step in steps:
        waiter.add(step)
    assert all(step.begun.wait(60) for step in steps[:3])
    assert len(waiter._serving) == 3
    assert not steps[3].begun.is_set()
    for step in steps:
        step.ready.set()
    waiter.close()
    assert len(order) == 24
