"""Interrupts at any place of a call: each arrives, the next call works, the exit code is 0."""

from __future__ import annotations

import pytest

from support.apart import runs_apart
from support.distributions import run_python, run_warm
from support.effort import EFFORT
from support.platforms import platform_environment

CODE = "import sys; from cpu.client.interrupted_calls import main; sys.exit(main(*sys.argv[1:]))"
VARIABLES = {**platform_environment(), "JAX_NUM_CPU_DEVICES": "2"}
SAMPLE = (
    "scopes:3", "frames:1", "put:3", "eager:9", "lower:700", "read:901", "pmap:1103",
    "sharded:1301",
)  # fmt: skip
WHOLE = (
    "put", "read", "lower", "jit", "compiled", "eager", "pmap", "by_operation", "sharded",
    "shard_map", "in_mesh", "callback",
)  # fmt: skip


def test_a_sample_of_interrupts() -> None:
    uses = tuple(f"sweep:{use}" for use in SAMPLE)
    done = run_warm(CODE, arguments=uses, **VARIABLES)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-5000:] + done.stderr


@runs_apart("lifetimes")
@pytest.mark.parametrize("use", WHOLE)
def test_an_interrupt_at_any_place_leaves_nothing_behind(use: str) -> None:
    """Earlier, later calls were added to an ended trace, and the process aborted at exit."""
    arguments = (f"sweep:{use}:{max(1, 53 // EFFORT)}",)
    done = run_python(CODE, arguments=arguments, timeout=600 * EFFORT, **VARIABLES)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-5000:] + done.stderr


@runs_apart("lifetimes")
def test_an_interrupt_at_any_place_of_the_first_put() -> None:
    """The next put finds its modules complete, and a single thread imports them."""
    arguments = (f"first:put:{9973 // min(EFFORT, 10)}",)
    done = run_python(CODE, arguments=arguments, timeout=600 * EFFORT, **VARIABLES)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-5000:] + done.stderr


@runs_apart("lifetimes")
def test_an_interrupt_at_any_module_of_the_first_imports() -> None:
    """Earlier, a later import found incomplete modules, and the compiled core was refused."""
    code = CODE.replace("client.interrupted_calls", "plugins.interrupted_imports")
    arguments = (str(max(1, 53 // EFFORT)),)
    done = run_python(code, arguments=arguments, timeout=600 * EFFORT, **VARIABLES)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-5000:] + done.stderr
