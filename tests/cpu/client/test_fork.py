"""A forked child process that deletes arrays and exits normally, without a crash."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CODE = """
import os, signal, sys, threading
import numpy as np
import plugrt
from plugrt import array_api as xp

x = plugrt.jit(lambda a: xp.sum(a @ a))(np.ones((300, 300), "f4"))
x.block_until_ready()
y = plugrt.pmap(lambda a: a + 1)(np.ones((2, 4), "f4"))
client = x.sharding.device_set.pop().client
locked, over = threading.Event(), threading.Event()

def launch_or_delete():
    with client.launch_lock:
        locked.set()
        over.wait()

thread = threading.Thread(target=launch_or_delete)
thread.start()
locked.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)
    x.delete(), y.delete()
    sys.exit(7)
over.set()
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), float(x))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_deletes_arrays_and_exits_as_it_says() -> None:
    """Also if a thread of the parent process held the lock that deletions need."""
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "2"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CODE],
        env=env, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.stdout == "7 27000000.0\n", done.stderr[-2000:]
