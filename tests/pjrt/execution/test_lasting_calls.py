"""Long series of calls, and calls beside deletions: in the compiled core, or in Python without it.

``nox -s core`` runs these in both: a million calls of each kind in C, 100,000 in Python.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import children
from support.effort import EFFORT
from support.native_core import SANITIZED, needs_core
from support.xla_cpu import library_path, needs_library

COUNT = 200
"""Calls of each kind; a million with an effort of 5000, see `pjrt.execution.flat_calls`."""

SLOW = """
import sys, threading
import numpy as np
import plugrt
from plugrt import lax
from plugrt.errors import DeletedBuffer

@plugrt.jit
def slow(x, y):
    return lax.fori_loop(0, 40, lambda _, v: (v @ y) * 0.5, x) + x

host, unit = np.ones((96, 96), np.float32), plugrt.device_put(np.eye(96, dtype=np.float32))
expected = np.asarray(slow(plugrt.device_put(host), unit))
found = {"right": 0, "deleted": 0}
for i in range(int(sys.argv[1])):
    x, go = plugrt.device_put(host), threading.Event()
    def delete():
        go.wait()
        for _ in range(i * 37 % 2000):  # a little later each time
            pass
        x.delete()
    thread = threading.Thread(target=delete)
    thread.start()
    go.set()
    try:
        y = slow(x, unit)
        thread.join()
        del x
        plugrt.device_put(host * 0)  # which may get memory that is free by now
        assert np.array_equal(np.asarray(y), expected)
        found["right"] += 1
    except DeletedBuffer:
        thread.join()
        found["deleted"] += 1
print(found["right"] + found["deleted"])
"""

INTERPRETERS = """
try:
    import _interpreters as interpreters
    new = interpreters.create("legacy")
except ImportError:
    import _xxsubinterpreters as interpreters
    new = interpreters.create(isolated=False)

def run(code):
    failed = interpreters.run_string(new, code)
    assert failed is None, failed
"""
SUBINTERPRETER = (
    INTERPRETERS
    + """
import numpy as np
import plugrt
import plugrt._core

add = plugrt.jit(lambda a, b: a + b)
x = plugrt.device_put(np.ones(4, np.float32))
add(x, x)
run('''
try:
    import plugrt._core
except ImportError as error:
    assert "the main interpreter alone" in str(error), error
else:
    raise AssertionError("another interpreter has the types of the first")
''')
interpreters.destroy(new)
print(np.asarray(add(x, x)).tolist())
"""
)

SUBINTERPRETER_FIRST = (
    INTERPRETERS
    + """
import numpy  # which the main interpreter cannot load once another has
run('''
import warnings
warnings.simplefilter("ignore")  # NumPy's, of interpreters
import plugrt.errors
try:
    import plugrt._core
except ImportError as error:
    print(error, flush=True)
from plugrt.lifetime.main_interpreter import require_main_interpreter
for use in (lambda: require_main_interpreter("optree"), lambda: plugrt.device_put(1)):
    try:
        use()
    except (plugrt.errors.FailedPrecondition, ImportError) as error:
        print(repr(error), flush=True)
''')
interpreters.destroy(new)
import sys
import plugrt._core
del sys.modules["plugrt._core"]
try:
    import plugrt._core
except ImportError as error:
    print(error)
"""
)

FORK = """
import atexit, os, sys, threading, time
# Workaround for xla-exit-after-fork
# Called after plugrt's handler. The destructors of XLA's own that end the process crash or wait
# where the fork came while another thread was in a launch (oneDNN's code generators).
atexit.register(lambda: child == 0 and os._exit(7))
import numpy as np
import plugrt
import plugrt._core as core
from plugrt import lax

slow = plugrt.jit(lambda x: lax.fori_loop(0, 300, lambda _, v: (v @ v) * 0.5, x))
x = plugrt.device_put(np.eye(96, dtype=np.float32))
slow(x)
done = threading.Event()
def call():
    while not done.is_set():
        slow(x)
thread = threading.Thread(target=call)
thread.start()
for _ in range(1000):
    if core.calls_under_way():
        break
    time.sleep(0.001)
under_way = core.calls_under_way()
child = os.fork()
if child == 0:
    print("child:", core.calls_under_way(), flush=True)
    sys.exit(7)
_, status = os.waitpid(child, 0)
done.set()
thread.join()
print("parent:", under_way, os.waitstatus_to_exitcode(status), core.calls_under_way())
"""


def start(*command: str, platform: str, **environ: str) -> subprocess.Popen[str]:
    env = {
        **os.environ,
        **environ,
        "JAX_PLATFORMS": platform,
        "PJRT_NAMES_AND_LIBRARY_PATHS": f"xla_cpu:{library_path()}",
        "PYTHONPATH": children.path_with(Path(__file__).parents[2]),
    }
    return children.start([sys.executable, *command], env=env)


def output_of(child: subprocess.Popen[str]) -> str:
    with child:
        try:
            output, errors = child.communicate(timeout=max(200, 3 * EFFORT))
        except BaseException:
            child.kill()
            raise
    assert child.returncode == 0, errors[-2000:]
    return output


def run(*command: str, platform: str, **environ: str) -> str:
    return output_of(start(*command, platform=platform, **environ))


@needs_library
@pytest.mark.long
def test_calls_leave_no_memory_objects_or_references_behind() -> None:
    """Both platforms at once: each child uses one processor."""
    command = "-m", "pjrt.execution.flat_calls", str(COUNT * EFFORT)
    running = {name: start(*command, platform=name) for name in ("cpu", "xla_cpu")}
    try:
        accounts = {name: json.loads(output_of(child)) for name, child in running.items()}
    finally:
        for child in running.values():
            child.kill()
    for name, told in accounts.items():
        for kind, grown in told["grown"].items():
            assert grown["MB"] < 8 or SANITIZED, (name, kind, told)
            # caches may fill, but not with an entry per call
            assert grown["objects"] < 100, (name, kind, told)
            assert grown["references"] < 20, (name, kind, told)


@needs_library
@pytest.mark.parametrize("platform", ["cpu", "xla_cpu"])
def test_an_argument_is_deleted_while_a_slow_program_is_launched(platform: str) -> None:
    """The result is right, or the error states that the argument is deleted."""
    count = 30 * min(EFFORT, 100)
    assert run("-c", SLOW, str(count), platform=platform).strip() == str(count)


@needs_core
@needs_library
def test_another_interpreter_of_the_process_takes_the_python_path() -> None:
    assert run("-c", SUBINTERPRETER, platform="xla_cpu").strip() == str([2.0] * 4)
    told = run("-c", SUBINTERPRETER_FIRST, platform="cpu", PLUGRT_CORE="")
    core, refused, used, again = told.splitlines()
    assert core == "plugrt._core serves the main interpreter alone"
    assert "needs optree, whose import waits for ever in an interpreter other" in refused
    assert used == refused or "failed to import" in used or "more than once" in used, used
    assert again == "plugrt._core is loaded already, once for a process"


@needs_core
@needs_library
def test_a_child_forked_during_a_call_of_another_thread_has_none_under_way() -> None:
    """The child's exit waits for running calls, and would wait for one whose thread it lacks."""
    told = run("-c", FORK, platform="xla_cpu", PLUGRT_CORE="c").splitlines()
    assert told == ["child: 0", "parent: 1 7 0"]
