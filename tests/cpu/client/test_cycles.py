"""Uses arrays and programs while the garbage collector clears a cycle."""

from __future__ import annotations

import signal

import pytest

from support.apart import runs_apart
from support.distributions import run_python
from support.platforms import platform_environment

pytestmark = runs_apart("lifetimes")

CYCLES = """
import gc
import numpy as np
import plugrt

def make():
    return plugrt.device_put(np.arange(4, dtype=np.float32))

f = plugrt.jit(lambda x: x + 1)
f(make())
found = []

def generate():
    a = make()
    b = f(a)
    try:
        yield
    finally:
        found.append(USE)

def leave_in_a_cycle():
    generator = generate()
    next(generator)
    cycle = [generator]
    cycle.append(cycle)

for _ in range(200):
    leave_in_a_cycle()
gc.collect()
print(len(found), np.unique(np.array([np.asarray(x) for x in found]), axis=0).tolist())
"""


@pytest.mark.parametrize(
    ("use", "value"),
    [
        ("np.asarray(a) + np.asarray(b)", [1, 3, 5, 7]),
        ("f(a).block_until_ready()", [1, 2, 3, 4]),
        ("np.asarray(a) + np.asarray(b) + np.asarray(f(b))", [3, 6, 9, 12]),
        ("f(b) + a", [2, 4, 6, 8]),
        ("plugrt.device_put(np.asarray(b))", [1, 2, 3, 4]),
    ],
)
def test_many_generators_whose_finally_uses_them(use: str, value: list[int]) -> None:
    done = run_python(CYCLES.replace("USE", use), **platform_environment())
    assert done.stdout == f"200 {[[float(v) for v in value]]}\n", done.stderr[-2000:]


def test_without_the_workaround_such_generators_end_the_process() -> None:
    """A fault of jaxlib; where this fails, `plugrt_cpu.tracebacks.stop_recording` may go."""
    without = "import plugrt_cpu.tracebacks\nplugrt_cpu.tracebacks.is_alone = lambda: False\n"
    script = without + CYCLES.replace("USE", "np.asarray(a) + np.asarray(b)")
    done = run_python(script, **platform_environment())
    assert done.returncode == -signal.SIGSEGV, done.stdout + done.stderr[-2000:]


LINGERING = """
import gc, threading, types
import numpy as np
import plugrt
from plugrt.lifetime.thread_work import ThreadWork

one = np.ones(8, np.float32)
plugrt.device_put(one)
started, end = threading.Event(), threading.Lock()
end.acquire()
lingering = ThreadWork(started.set)
lingering._ended = types.SimpleNamespace(release=end.acquire)  # its last step
lingering.start()
started.wait()
found = []

def leave_in_a_cycle():
    def generate():  # few references to its code: those that get lost count
        try:
            yield
        finally:
            plugrt.device_put(one)
            found.append(1)

    generator = generate()
    next(generator)
    cycle = [generator]
    cycle.append(cycle)

gc.disable()
for i in range(60):
    for _ in range(3):
        leave_in_a_cycle()
    gc.set_threshold(1 + i * 3)
    gc.enable()  # the collector starts within jaxlib, too
    plugrt.jit(lambda x, i=i: x * i + 1)(one)
    gc.disable()
gc.collect()
end.release()
print(len(found))
"""


def test_the_thread_of_a_compilation_that_is_still_ending_changes_nothing() -> None:
    """Earlier, it counted as another thread, and jaxlib's recording of tracebacks crashed."""
    done = run_python(LINGERING, **platform_environment())
    assert done.stdout == "180\n", done.stderr[-2000:]


def test_a_collection_frees_the_frames_of_waits() -> None:
    """Earlier, each `is_ready` and each read kept 100 bytes until the next put or launch."""
    code = """
    import gc, sys
    import numpy as np
    import plugrt
    x = plugrt.jit(lambda v: v + 1)(np.ones(1000, np.float32))
    for use in (x.is_ready, x.block_until_ready, x.addressable_shards[0].data.is_ready):
        for count in (100, 2000):
            before = sys.getallocatedblocks()
            for _ in range(count):
                use()
            gc.collect()
        print(sys.getallocatedblocks() - before < 500)
    """
    done = run_python(code, **platform_environment())
    assert done.stdout == "True\nTrue\nTrue\n", done.stderr
