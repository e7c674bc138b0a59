"""Many jitted calls and transfers leave neither memory nor handles behind."""

from __future__ import annotations

import os
import subprocess
import sys

from support.native_core import SANITIZED
from support.xla_cpu import library_path, needs_library

pytestmark = needs_library

CODE = """
import gc, os
import numpy as np
import plugrt
from plugrt.capi.loading.handle_ledger import Ledger
from plugrt.capi import load_library

# The library that the backend will use, too: there is one table for each file.
ledger = Ledger(load_library(os.environ["PATH_OF_LIBRARY"]))
step = plugrt.jit(lambda a, b: (a + b, a * b), donate_argnums=0)
plain = plugrt.jit(lambda a, b: a + b)
host = np.ones(256, np.float32)

def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20

def calls(count):
    x, y = plugrt.device_put(host), plugrt.device_put(host)
    for _ in range(count):
        plain(x, y)
        x, _ = step(x, y)
    return x.block_until_ready()

def rounds(count):
    for _ in range(count):
        np.asarray(plugrt.device_put(host))

grown = []
for work in (calls, rounds):
    work(1_000)
    gc.collect()
    before = resident()
    work(10_000)
    gc.collect()
    grown.append(resident() - before)
del step, plain
plugrt.clear_caches()
plugrt.clear_backends()
gc.collect()
print(max(grown), ledger.created["Buffer"] > 40_000, ledger.open_handles())
"""


def test_memory_and_handles() -> None:
    env = {
        **os.environ,
        "PATH_OF_LIBRARY": str(library_path()),
        "JAX_PLATFORMS": "xla_cpu",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env=env, capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    grown, counted, left = done.stdout.split(maxsplit=2)
    assert float(grown) < 5 or SANITIZED
    assert counted == "True", "the ledger watches another table than the backend uses"
    assert left.strip() == "{}"
