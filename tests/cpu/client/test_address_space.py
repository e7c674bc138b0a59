"""A limit of the address space (``ulimit -v``) is an error, before XLA ends the process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.apart import runs_apart
from support.distributions import run_python

LIMITED = """
import resource
import numpy as np
import plugrt
limit = MEGABYTES * 1_000_000
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    print(float(plugrt.jit(lambda x: x @ x + 1)(np.ones((64, 64), np.float32))[0, 0]))
except plugrt.errors.PlugrtError as error:
    assert "ulimit -v" in str(error), error
    print(type(error).__name__)
"""


@runs_apart("lifetimes")
@pytest.mark.skipif(sys.platform != "linux", reason="others let a process have no such limit")
@pytest.mark.parametrize(
    ("megabytes", "printed"),
    [(300, "MissingTraceExtra"), (600, "PluginBroken"), (1000, "PluginBroken"), (4000, "65.0")],
)
def test_too_small_an_address_space_is_an_error(
    megabytes: int, printed: str, tmp_path: Path
) -> None:
    """Earlier, SIGSEGV or SIGABRT ended the process between 0.6 and 1.5 GB."""
    done = run_python(
        LIMITED.replace("MEGABYTES", str(megabytes)),
        JAX_PLATFORMS="cpu",
        PLUGRT_CACHE_DIR=str(tmp_path),
        JAX_NUM_CPU_DEVICES="1",
    )
    assert (done.stdout, done.returncode) == (f"{printed}\n", 0), done.stderr[-2000:]
