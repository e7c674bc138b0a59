"""Forks beside threads that share or take the buffers of arrays."""

from __future__ import annotations

import os
import threading
import time

import pytest

from plugrt.execution.array_deletion import sharers_lock


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_child_takes_what_another_thread_was_taking() -> None:
    takes = threading.Event()

    def take() -> None:
        with sharers_lock:
            takes.set()
            time.sleep(0.1)

    thread = threading.Thread(target=take)
    thread.start()
    takes.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if sharers_lock.acquire(timeout=10) else 1)
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    assert sharers_lock.acquire(blocking=False)
    sharers_lock.release()
