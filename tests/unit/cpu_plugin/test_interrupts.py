"""Compilation in a thread while the main thread waits, interrupted at each line."""

from __future__ import annotations

import _thread
import gc
import itertools
import sys
import threading
import time
import traceback
import types
import weakref

import pytest

from plugrt.lifetime import thread_work
from plugrt.lifetime.main_interpreter import current_frames
from plugrt_cpu import interrupts
from support.apart import runs_apart
from support.interruption import Interruption
from support.watched_calls import at_calls

pytestmark = runs_apart("lifetimes")


def test_the_thread_keeps_nothing_alive_once_the_result_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread may end late. Earlier, a closed client was not freed before that."""
    may_end = threading.Event()

    class Lock:
        def __init__(self) -> None:
            self.lock = threading.Lock()
            self.acquire = self.lock.acquire

        def release(self) -> None:
            self.lock.release()
            may_end.wait(60)

    class Client:
        def compile(self) -> Client:
            return self

    monkeypatch.setattr(thread_work, "allocate_lock", Lock)
    try:
        client = Client()
        assert interrupts.run_uninterrupted(client.compile) is client
        gone = weakref.ref(client)
        del client
        assert gone() is None
    finally:
        may_end.set()


def test_the_work_is_done_on_this_thread_where_no_other_can_start() -> None:
    before = threading.stack_size(2**47)  # more than the addresses of a process
    try:
        assert interrupts.run_uninterrupted(threading.get_ident) == threading.get_ident()
    finally:
        threading.stack_size(before)


def test_a_runtime_error_of_a_signal_handler_is_raised() -> None:
    """Python also raises a RuntimeError if no thread can start."""

    def handler(*_: object) -> None:
        raise RuntimeError("of the handler")

    called = at_calls([_thread.start_new_thread], handler)
    with pytest.raises(RuntimeError, match="of the handler"), called:
        interrupts.run_uninterrupted(threading.get_ident)


def await_threads() -> None:
    """Waits until no thread does a `ThreadWork` any more."""
    code = thread_work.ThreadWork.run.__code__
    while any(
        frame.f_code is code
        for innermost in current_frames().values()
        for frame, _ in traceback.walk_stack(innermost)
    ):
        time.sleep(0.001)


@pytest.mark.parametrize("module", [interrupts, thread_work], ids=lambda m: m.__name__)
def test_an_interrupt_at_any_line_leaves_nothing_behind(
    module: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each interrupt is raised, and work that has begun is completed."""
    monkeypatch.setattr(interrupts, "is_alone", lambda: True)
    assert module.__file__ is not None
    for line in itertools.count():
        begun, ended = list[int](), list[int]()
        interruption, before = Interruption(module.__file__, line), sys.gettrace()
        raised, found = False, None

        def work(begun: list[int] = begun, ended: list[int] = ended) -> str:
            begun.append(1)
            ended.append(1)
            return "made"

        sys.settrace(interruption)
        try:
            found = interrupts.run_uninterrupted(work)
        except KeyboardInterrupt:
            raised = True
        finally:
            sys.settrace(before)
        assert (found, raised) == ((None, True) if interruption.came else ("made", False)), line
        await_threads()
        assert gc.isenabled()
        assert not interrupts._under_way, line
        assert ended == begun
        if not interruption.came:
            break
    assert line > 8
