"""docs/platforms.md: the cpu plugin runs without /proc, as on macOS."""

from __future__ import annotations

import textwrap

from support.distributions import run_python

NO_PROC = """
import sys

def refuse(event, arguments):
    if event in ("open", "os.listdir", "os.scandir") and str(arguments[0]).startswith("/proc"):
        refused.append(str(arguments[0]))
        raise FileNotFoundError(2, "there is no /proc", str(arguments[0]))

refused = []
sys.addaudithook(refuse)
"""


def test_the_cpu_plugin_runs_without_proc() -> None:
    code = """
    import os
    import numpy as np
    import plugrt

    try:
        open("/proc/self/maps")
    except FileNotFoundError:
        print("no /proc")
    x = np.ones((2, 3), np.float32)
    print(plugrt.jit(lambda v: v + v)(x).tolist())
    print(plugrt.pmap(lambda v: plugrt.lax.psum(v, "i"), axis_name="i")(x).tolist())
    compiled = plugrt.jit(lambda v: v * 3).lower(x).compile()
    print(np.asarray(compiled(x))[0].tolist())
    """
    done = run_python(NO_PROC + textwrap.dedent(code), JAX_NUM_CPU_DEVICES="2", JAX_PLATFORMS="cpu")
    assert done.stdout.splitlines() == [
        "no /proc",
        "[[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]]",
        "[[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]]",
        "[3.0, 3.0, 3.0]",
    ], done.stderr
