"""Arrays that one thread reads, awaits or launches with while another deletes or donates them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt_cpu import adapter
from support.effort import EFFORT, WHOLE
from support.platforms import platform_environment

CODE = """
import sys, threading, time
import ml_dtypes
import numpy as np
import plugrt
from plugrt.errors import DeletedBuffer

kind, how = sys.argv[1:]
devices = plugrt.local_devices()[:2]
dtype = ml_dtypes.bfloat16 if kind == "bfloat16" else np.dtype("f4")
host = np.arange(1000).reshape(2, 500).astype(dtype)
wrap = plugrt.jit if kind != "pmap" else plugrt.pmap
twice = wrap(lambda x: x + x, **({} if kind != "pmap" else {"devices": devices}))
take = wrap(lambda x: x + 1, donate_argnums=0, **({} if kind != "pmap" else {"devices": devices}))
end = {"donate": take, "delete": lambda x: x.delete()}[how]

def read(x):
    found = np.asarray(x)
    assert np.array_equal(found, host + host), found

uses = [
    read,
    lambda x: x.block_until_ready(),
    twice,
    lambda x: plugrt.device_put(x, devices[-1]),
    lambda x: np.from_dlpack(x) if kind == "f4" else read(x),
    lambda x: memoryview(np.asarray(x)).tobytes() if kind != "bfloat16" else read(x),
    repr,
    lambda x: x[0],
    lambda x: x.is_deleted(),
]
current, faults = [twice(host)], []
stop = time.monotonic() + SECONDS

def use(i):
    while time.monotonic() < stop:
        try:
            uses[i](current[0])
        except DeletedBuffer:
            pass
        except BaseException as error:
            faults.append(f"{i} {type(error).__name__}: {error}")
            return

def finish():
    while time.monotonic() < stop:
        old, current[0] = current[0], twice(host)
        try:
            end(old)
        except DeletedBuffer:
            pass
        except BaseException as error:
            faults.append(f"{how} {type(error).__name__}: {error}")
            return

sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=use, args=(i,)) for i in range(len(uses))]
threads += [threading.Thread(target=finish) for _ in range(2)]
[t.start() for t in threads]
[t.join() for t in threads]
assert not faults, faults[:5]
read(twice(host))
print("done")
"""


SECONDS = 0.8 * EFFORT


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "how"),
    [("f4", "donate"), ("bfloat16", "delete"), ("pmap", "donate")]
    + [("f4", "delete"), ("bfloat16", "donate"), ("pmap", "delete")] * WHOLE,
)
def test_data_or_deleted_and_never_a_crash(kind: str, how: str) -> None:
    env = {**os.environ, **platform_environment(), "TF_CPP_MIN_LOG_LEVEL": "3"}
    code = CODE.replace("SECONDS", str(SECONDS))
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code, kind, how],
        env=env, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-3000:]


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda x: np.asarray(x), id="read"),
        pytest.param(lambda x: np.from_dlpack(x), id="dlpack"),
        pytest.param(lambda x: x.unsafe_buffer_pointer(), id="pointer"),
        pytest.param(lambda x: x.delete(), id="delete"),
    ],
)
def test_memory_is_not_looked_at_while_another_thread_deletes(use: Callable[[Any], Any]) -> None:
    # The crash itself needs minutes: the race in XLA is a few instructions wide.
    x = plugrt.device_put(np.arange(6, dtype=np.float32)).block_until_ready()
    done = threading.Event()

    def use_and_tell() -> None:
        use(x)
        done.set()

    thread = threading.Thread(target=use_and_tell)
    with adapter.memory_lock:
        thread.start()
        assert not done.wait(0.1)
    thread.join(60)
    assert done.is_set()
