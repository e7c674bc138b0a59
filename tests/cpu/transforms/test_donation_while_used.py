"""Arrays that are donated to a launch while another launch, or the host, uses them."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import plugrt
from plugrt import device_put, jit
from support.cpu_launches import of_cpu_launches
from support.native_core import IN_C, python_calls
from support.ops import add
from support.platforms import platform_environment

N = np.arange(4096, dtype=np.float32)


SLOW = 200
"""The number of multiplications that makes a launch return before it has ended."""


@of_cpu_launches
@pytest.mark.parametrize("shared", [False, True])
def test_a_late_result_of_host_values_is_taken_without_a_copy(shared: bool) -> None:
    """The core's record of the launch, kept until its host values are read, is no use of x."""
    host = np.full((100, 100), 0.01, np.float32)
    square = device_put(host)
    run = jit(lambda x, y: plugrt.lax.fori_loop(0, SLOW, lambda i, z: z @ x, x) + y)
    take = jit(lambda x: add(x, 1), donate_argnums=0)
    late = 0
    for i in range(20):
        x = run(square, host + i)
        late += not x.is_ready()
        if shared:  # Python handles these
            x, other = device_put(x, x.device), x
            other.delete()
        with python_calls() as seen:
            result = take(x)
        assert "duplicate" not in seen, "it is copied"
        assert x.is_deleted()
        np.testing.assert_allclose(np.asarray(result), 2 * host + i + 1, rtol=1e-4)
    assert late


THREADS = """
import os, sys, threading, time
import numpy as np
import plugrt
from plugrt.errors import DeletedBuffer

sys.setswitchinterval(1e-6)
host = np.float32([1, 2, 3, 4])
arrays = [plugrt.device_put(host) for _ in range(4)]
add, take = plugrt.jit(lambda a, b: a + b), plugrt.jit(lambda x: x + 1, donate_argnums=0)
both = plugrt.jit(lambda a, b: (a + b, a - b), donate_argnums=(0, 1))
stop = time.monotonic() + 1

def use(number):
    while time.monotonic() < stop:
        for i in range(4):
            x, y = arrays[i], arrays[(i + number) % 4]
            try:
                add(x, y)
            except DeletedBuffer:
                pass

def end():
    while time.monotonic() < stop:
        for i in range(4):
            x, arrays[i] = arrays[i], plugrt.device_put(host)
            take(x)
            x, y = arrays[i], arrays[i - 1]
            arrays[i], arrays[i - 1] = plugrt.device_put(host), plugrt.device_put(host)
            both(y, x)

threads = [threading.Thread(target=use, args=(i,), daemon=True) for i in (0, 1)]
threads.append(threading.Thread(target=end, daemon=True))
[thread.start() for thread in threads]
[thread.join(30) for thread in threads]
print("done" if not any(thread.is_alive() for thread in threads) else "hangs", flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("which", ["c", "python"])
def test_launches_and_donations_of_one_array_do_not_wait_for_each_other(which: str) -> None:
    if which == "c" and not IN_C:
        pytest.skip("no compiled core here")
    env = {
        **os.environ,
        **platform_environment(),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PLUGRT_CORE": which,
    }
    done = subprocess.run(
        [sys.executable, "-c", THREADS],
        env=env, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.stdout == "done\n", done.stderr[-3000:]
