"""Arrays that one launch takes while another, or the host, uses them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import device_put, jit
from plugrt.execution.launches import donation
from support.cpu_launches import of_cpu_launches
from support.native_core import IN_C
from support.ops import add
from support.platforms import platform_environment

N = np.arange(4096, dtype=np.float32)


@of_cpu_launches
@pytest.mark.parametrize("general", [False, True])
def test_what_another_launch_may_use_is_copied_to_be_taken(general: bool) -> None:
    """jaxlib lets both wait for ever where the other has it for one of two arguments."""
    plain = jit(lambda x, y: add(x, y), donate_argnums=0)
    both = jit(lambda x, y: (add(add(x, y), N), y), donate_argnums=0)
    f, expected = (both, 3 * N) if general else (plain, 2 * N)
    y = add(device_put(N), 0)
    for _ in range(3):
        x = add(device_put(N), 0)
        used = x._shards  # as another launch has it
        np.testing.assert_array_equal(plugrt.tree.leaves(f(x, y))[0], expected)
        assert x.is_deleted()
        assert not used.is_deleted()
        np.testing.assert_array_equal(np.asarray(used), N)


@of_cpu_launches
def test_what_the_host_has_read_is_taken_without_a_further_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(array: Any) -> Any:
        raise AssertionError("it is copied")

    monkeypatch.setattr(donation, "duplicate", refuse)
    f = jit(lambda x, y: add(x, y), donate_argnums=0)
    y = device_put(N)
    x = add(y, 0)
    for i in range(5):
        host = np.asarray(x)
        x = f(x, y)
        np.testing.assert_array_equal(host, (i + 1) * N)


SLOW = 200
"""Times that a program multiplies, so that its launch returns before it has ended."""


@of_cpu_launches
@pytest.mark.parametrize("shared", [False, True])
def test_a_late_result_of_host_values_is_taken_without_a_copy(
    shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the core keeps of the launch, to know when the values were read, is no use of it."""

    def refuse(array: Any) -> Any:
        raise AssertionError("it is copied")

    monkeypatch.setattr(donation, "duplicate", refuse)
    host = np.full((100, 100), 0.01, np.float32)
    square = device_put(host)
    run = jit(lambda x, y: plugrt.lax.fori_loop(0, SLOW, lambda i, z: z @ x, x) + y)
    take = jit(lambda x: add(x, 1), donate_argnums=0)
    late = 0
    for i in range(20):
        x = run(square, host + i)
        late += not x.is_ready()
        if shared:  # which Python looks at
            x, other = device_put(x, x.device), x
            other.delete()
        result = take(x)
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
