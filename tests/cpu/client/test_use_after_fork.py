"""A forked child that uses a started backend gets an error, and does not hang."""

from __future__ import annotations

import ast
import os

import pytest

from support.apart import runs_apart
from support.distributions import run_python
from support.platforms import platform_environment

pytestmark = runs_apart("lifetimes")

PROGRAM = """
import os, signal
import numpy as np
import plugrt

host = np.ones((4, 4), np.float32)
x = plugrt.device_put(host)
f, donating = plugrt.jit(lambda v: v + 1), plugrt.jit(lambda v: v + 2, donate_argnums=0)
mapped = plugrt.pmap(lambda v: v * 2)
parts = np.ones((min(2, len(plugrt.devices())), 3), np.float32)
for _ in range(3):  # the calls below are in the compiled core then
    f(x), f(host), x + x, donating(plugrt.device_put(host)), mapped(parts)
compiled = f.lower(x).compile()
compiled(x)
loose = plugrt.device_put(host)
uses = {
    "call": lambda: f(x),
    "call with a host array": lambda: f(host),
    "operator": lambda: x + x,
    "donating call": lambda: donating(loose),
    "compiled": lambda: compiled(x),
    "pmap": lambda: mapped(parts),
    "put": lambda: plugrt.device_put(host),
    "compile": lambda: plugrt.jit(lambda v: v * 3)(x),
}
wrong = []
for name, use in uses.items():
    if not (child := os.fork()):
        signal.alarm(60)
        try:
            use()
        except plugrt.errors.FailedPrecondition as error:
            os._exit(0 if "os.fork()" in str(error) and "spawn" in str(error) else 2)
        os._exit(3)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        wrong.append((name, status))
print(wrong, float(f(x).sum()))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:os.fork")
@pytest.mark.parametrize("core", ["c", "python"])
def test_each_use_is_refused(core: str) -> None:
    """Earlier, compilations and launches that need threads hung, on cpu and on libraries."""
    environment = {**platform_environment(), "PLUGRT_CORE": core, "JAX_NUM_CPU_DEVICES": "2"}
    environment["PYTHONWARNINGS"] = "ignore"
    assert run_python(PROGRAM, **environment).stdout == "[] 32.0\n"


READS = """
import os, signal
import numpy as np
import plugrt

x = plugrt.device_put(np.ones((1500, 1500), np.float32))
y = plugrt.jit(lambda v: v + 1)(x).block_until_ready()
several = plugrt.pmap(lambda v: v + 1)(np.ones((2, 3), np.float32)).block_until_ready()
long = plugrt.jit(lambda v: v @ v @ v @ v)
long(x).block_until_ready()
uses = {
    "asarray": lambda late: np.asarray(y)[0, 0] == 2,
    "copy": lambda late: np.array(x)[0, 0] == 1,
    "dlpack": lambda late: np.from_dlpack(y)[0, 0] == 2,
    "several": lambda late: np.asarray(several)[1, 2] == 2,
    "wait": lambda late: y.block_until_ready() is y and plugrt.block_until_ready([x, y])[0] is x,
    "late read": lambda late: np.asarray(late)[0, 0],
    "late wait": lambda late: late.block_until_ready(),
    "late tree": lambda late: plugrt.block_until_ready([x, late]),
    "late read of several": lambda late: late.addressable_shards[0].data.tolist(),
}
answers = {}
for name, use in uses.items():
    late = long(x) if name.startswith("late") else None  # which takes some tenths of a second
    if not (child := os.fork()):
        signal.alarm(60)
        try:
            os._exit(0 if use(late) else 3)
        except plugrt.errors.FailedPrecondition as error:
            os._exit(1 if "os.fork()" in str(error) and "spawn" in str(error) else 2)
    answers[name] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(answers)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize("core", ["c", "python"])
def test_ready_arrays_are_read_after_a_fork_and_others_refused(core: str) -> None:
    """On cpu a ready array is memory of the process; earlier, a late one hung the child.

    A library is called for each read, so that such a read is refused.
    """
    environment = {**platform_environment(), "PLUGRT_CORE": core, "JAX_NUM_CPU_DEVICES": "2"}
    done = run_python(READS, **environment, PYTHONWARNINGS="ignore")
    answers = ast.literal_eval(done.stdout)
    late = {code for name, code in answers.items() if name.startswith("late")}
    ready = {code for name, code in answers.items() if not name.startswith("late")}
    assert late == {1}, answers
    assert ready == {0} if environment["JAX_PLATFORMS"] == "cpu" else ready <= {0, 1}, answers


STARTED_LATER = """
import os
import numpy as np
import plugrt
import plugrt_cpu.create_client, plugrt.transforms.jit

if not (child := os.fork()):
    long = plugrt.jit(lambda v: v @ v @ v @ v)
    x = plugrt.device_put(np.ones((512, 512), np.float32))
    reads = lambda: (np.asarray(long(x))[0, 0], long(x).block_until_ready()[0, 0])
    assert all(value == 512.0**3 for _ in range(3) for value in reads())
    raise SystemExit
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize("core", ["c", "python"])
def test_a_child_waits_for_results_of_a_backend_that_it_has_started(core: str) -> None:
    """Earlier, a late result was refused in each child of a process that had imported plugrt."""
    done = run_python(STARTED_LATER, **platform_environment(), PLUGRT_CORE=core)
    assert (done.stdout, done.stderr) == ("0\n", "")
