"""A forked child that uses a started backend gets an error in words, and does not hang."""

from __future__ import annotations

import os

import pytest

from support.apart import runs_apart
from support.distributions import run_python
from support.platforms import platform_environment

pytestmark = runs_apart("test-lifetimes")

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
    """Compiling hung, on cpu and on libraries, and so did launches that need the thread pool."""
    environment = {**platform_environment(), "PLUGRT_CORE": core, "JAX_NUM_CPU_DEVICES": "2"}
    environment["PYTHONWARNINGS"] = "ignore"
    assert run_python(PROGRAM, **environment).stdout == "[] 32.0\n"
