"""What is known of a collection of garbage, within it and in other threads."""

from __future__ import annotations

import gc
import threading
from typing import Any

from plugrt.lifetime.garbage_collection import is_collecting_here, running
from support.distributions import run_python


class Cycle:
    """An object that only the garbage collector finds, and that calls a function then."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.me = self

    def __del__(self) -> None:
        self.call()


def test_a_collection_is_noted_while_it_runs_and_in_its_own_thread() -> None:
    seen: list[Any] = []

    def note() -> None:
        seen.append((bool(running), is_collecting_here()))

    def call() -> None:
        note()
        other = threading.Thread(target=note)
        other.start()
        other.join()

    note()
    Cycle(call)
    gc.collect()
    note()
    assert seen == [(False, False), (True, True), (True, False), (False, False)]


INTERRUPTED = """
import _thread, gc, signal
from functools import partial
from operator import methodcaller
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell runs behind
{use}

class Interrupting:  # written in C, so that the signal waits for what is called after it
    interrupt = staticmethod(_thread.interrupt_main)
    nothing = staticmethod(int)
    {phase} = property(methodcaller("interrupt"))
    {other} = property(methodcaller("nothing"))

gc.disable()
before = partial(getattr, Interrupting())
gc.callbacks.insert(0, before)
for _ in range(20):
    try:
        gc.collect()
        print("lost")
    except KeyboardInterrupt:
        pass
gc.callbacks.remove(before)
print("over", gc.callbacks and not gc.garbage)
"""


def test_an_interrupt_within_a_collection_is_not_lost() -> None:
    """Python drops what a callback of the collector raises, and a signal handler's interrupt."""
    for phase, other in [("start", "stop"), ("stop", "start")]:
        use = "import plugrt.tracing.trace"
        done = run_python(INTERRUPTED.format(use=use, phase=phase, other=other))
        assert (done.stdout, done.stderr) == ("over True\n", "")
