"""Calls in the compiled core and in Python have the same effects, for any calls.

`call_account.py` makes random calls in a child for each; here their accounts are compared, step by
step: results to the bit, dtypes, weak types and places, exceptions with their texts, deleted,
donated and living objects, references, events, log records and warnings.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support import children
from support.apart import runs_apart
from support.effort import EFFORT, seeds
from support.native_core import needs_core
from support.xla_cpu import library_path, needs_library

COUNT = 40
"""Steps on each platform, about a dozen a second; more with more effort."""


def start_calls(core: str, seed: int, count: int) -> subprocess.Popen[str]:
    """Returns a child with that ``PLUGRT_CORE`` which prints the results of its calls."""
    env = {
        **os.environ,
        "PLUGRT_CORE": core,
        "JAX_PLATFORMS": "cpu,xla_cpu,numpy",
        "JAX_NUM_CPU_DEVICES": "3",
        "PJRT_NAMES_AND_LIBRARY_PATHS": f"xla_cpu:{library_path()}",
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": children.path_with(Path(__file__).parents[2]),
    }
    command = [sys.executable, "-m", "pjrt.execution.call_account", str(seed), str(count)]
    return children.start([*command, "cpu", "xla_cpu", "numpy"], env=env)


def account_of(child: subprocess.Popen[str]) -> dict[str, Any]:
    """Waits for a child's account of its calls."""
    with child:
        try:
            output, errors = child.communicate(timeout=300 * EFFORT)
        except BaseException:
            child.kill()
            raise
    assert child.returncode == 0, errors[-2000:]
    found: dict[str, Any] = json.loads(output)
    return found


@runs_apart("python_calls")
@pytest.mark.long
@needs_core
@needs_library
@pytest.mark.parametrize("seed", seeds(1))
def test_calls_in_c_and_in_python_cannot_be_told_apart(seed: int) -> None:
    running = [start_calls(core, seed, COUNT * min(EFFORT, 10)) for core in ("python", "c")]
    try:
        in_python, in_c = map(account_of, running)
    finally:
        for child in running:
            child.kill()
    assert (in_python["runs in"], in_c["runs in"]) == ("python", "c")
    for platform, steps in in_python["steps"].items():
        different = [
            f"{platform}, step {step[0]}:\n  Python {one}\n  C      {other}"
            for step, others in zip(steps, in_c["steps"][platform], strict=True)
            for one, other in zip(step, others, strict=False)
            if one != other
        ]
        assert not different, "\n".join(different[:5])
        assert steps == in_c["steps"][platform]  # and as many outcomes
