"""Random calls with plugrt and with JAX: equal, except as `docs/data/jax_deviations.toml` lists.

The tests compare values, dtypes, weak types, shardings, memory kinds, commitment, the arguments and
results that compiled programs state, the arrays that donation deleted, the number of traces of a
function, and the built-in class that catches an exception.
"""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

import pytest

from support import children
from support.apart import runs_apart
from support.effort import seeds
from support.requirements import needs_jax

FORMS = ("eager", "jit", "aot", "placed", "pmap", "shard_map", "device_put", "from_jax")
LISTED = tomllib.loads((Path(__file__).parents[3] / "docs/data/jax_deviations.toml").read_text())[
    "entry"
]
TESTS = Path(__file__).parents[2]
ALONE = ("callback-without-x64", "callbacks-of-jax")
"""Entries on callbacks, whose examples differ after many other callbacks in one process."""
SHOWS = """
import sys
from support.differential.deviations import entries, entry_of
from support.differential.report import differences_of
[entry] = [entry for entry in entries() if entry.id == sys.argv[1]]
found = {entry_of(entry.example, d) for d in differences_of(entry.example)}
sys.exit(0 if found == {entry} else f"found {found}")
"""
EACH = 10
"""The number of cases in a test: they need a second or less."""

pytestmark = needs_jax


@pytest.mark.parametrize("chunk", seeds(3))
@pytest.mark.parametrize("form", FORMS)
def test_random_calls_are_as_in_jax(form: str, chunk: int) -> None:
    from support.differential.deviations import unknown
    from support.differential.generate import generate
    from support.differential.report import differences_of, report

    for seed in range(chunk * EACH, (chunk + 1) * EACH):
        case = generate(form, seed)
        if unknown(case, differences_of(case)):
            pytest.fail(f"{form}, seed {seed}: {report(case)}", pytrace=False)


@pytest.mark.parametrize("name", [entry["id"] for entry in LISTED])
def test_each_known_difference_has_an_example_that_still_differs(name: str) -> None:
    """If this fails, the entry is outdated, or an earlier one covers its example."""
    from support.differential.deviations import entries, entry_of
    from support.differential.report import differences_of

    [entry] = [entry for entry in entries() if entry.id == name]
    if name in ALONE:
        env = {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "8", "PYTHONPATH": str(TESTS)}
        command = [sys.executable, "-c", SHOWS, name]
        done = children.run(command, env={**os.environ, **env}, timeout=250)
        assert done.returncode == 0, done.stdout + done.stderr
        return
    assert {entry_of(entry.example, d) for d in differences_of(entry.example)} == {entry}


def test_the_default_memory_has_no_name_in_a_sharding() -> None:
    """The comparison counts both as the same.

    Differs from JAX: `memory_kind` of a sharding that names none | the default kind, `"device"` |
    None.
    """
    import jax
    import numpy as np

    import plugrt

    ours = plugrt.device_put(np.ones(3), plugrt.devices()[0]).sharding
    theirs = jax.device_put(np.ones(3), jax.devices()[0]).sharding
    assert ours.memory_kind is None
    assert theirs.memory_kind == jax.devices()[0].default_memory().kind


@runs_apart("as_jax")
def test_the_long_run_starts_as_its_page_says() -> None:
    """Without the settings of this suite's processes, such as the number of devices."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "PLUGRT_"))}
    found = children.run(
        [sys.executable, "-m", "support.differential", "--cases", "2", "--seed", "7"],
        timeout=300, cwd=TESTS, env=env,
    )  # fmt: skip
    assert found.stdout.startswith("eager: 2 cases"), found.stderr
    assert "\n16 cases, 0 with a difference that no entry covers\n" in found.stdout
