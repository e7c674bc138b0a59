"""The frames of all threads are read without a garbage collection, which deadlocks CPython."""

from __future__ import annotations

import gc
import threading

from plugrt.lifetime.main_interpreter import current_frames
from support.distributions import run_python

READ = """
import faulthandler, gc, sys, threading
from plugrt.lifetime.main_interpreter import current_frames
faulthandler.dump_traceback_later(20, exit=True)
stop = threading.Event()
def step(depth):
    return stop.wait() if not depth else step(depth - 1)
threads = [threading.Thread(target=step, args=(i,)) for i in range(30)]
for thread in threads:
    thread.start()
class Node: pass
gc.set_threshold(3)
for _ in range(300):
    for _ in range(3):
        node = Node()
        node.own, node.local = node, threading.local()
    assert len(current_frames()) > 30
stop.set()
print("read")
"""


def test_threads_locals_that_end_meanwhile() -> None:
    assert run_python(READ).stdout == "read\n"


def test_the_collector_is_left_as_it_was() -> None:
    assert threading.get_ident() in current_frames()
    assert gc.isenabled()
    gc.disable()
    try:
        current_frames()
        assert not gc.isenabled()
    finally:
        gc.enable()
