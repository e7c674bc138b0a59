"""Forks while threads share or donate the buffers of arrays."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

import plugrt
from plugrt.execution.arrays import sharers
from plugrt.execution.arrays.array_making import share_buffers
from plugrt.execution.launches.donation import give_back
from support.fake_client import FakeClient


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_child_takes_what_another_thread_was_taking() -> None:
    """The fork does not wait for the thread: a wait would lose exceptions of signal handlers."""
    taking, over, waited = threading.Event(), threading.Event(), list[bool]()
    x = plugrt.device_put(np.zeros(2, np.float32), FakeClient().devices()[0])

    def take() -> None:
        with sharers.lock:
            taking.set()
            waited.append(over.wait(20))

    thread = threading.Thread(target=take)
    thread.start()
    taking.wait()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        made = share_buffers(x, x._aval)
        give_back([])
        x.delete()
        with sharers.lock:
            os._exit(3 if x.is_deleted() and not made.is_deleted() else 4)
    over.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert waited == [True]
