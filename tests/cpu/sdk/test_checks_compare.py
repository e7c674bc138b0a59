"""On each real backend the passing checks have run their comparisons.

A check may pass because it never reaches the branch with its comparison, like ``several`` in
``checks/puts.py`` on every client whose puts return no lists. So all lines with a comparison must
run, except lines for other kinds of backends. `nox -s sdk` tests one backend, ``nox -s long`` all.
"""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path

import pytest

from support import children
from support.apart import runs_apart
from support.effort import WHOLE
from support.xla_cpu import needs_library

pytestmark = [runs_apart("sdk"), pytest.mark.long]

TESTS = Path(__file__).parents[2]
WAIVERS = TESTS.parent / "tools/conformance/xla_cpu.toml"
NUMPY, CPU, XLA_CPU, EXPORTED = "numpy", "cpu", "xla_cpu", "exported"
TARGETS = {
    NUMPY: ("plugin", "numpy", {"num_devices": 4}),
    CPU: ("plugin", "cpu", {"num_devices": 4}),
    XLA_CPU: ("plugin", "xla_cpu", {"cpu_device_count": 4}),
    EXPORTED: ("object", "support.conformance_mutants:through_capsule", {"num_devices": 4}),
}
FOR_OTHERS = {
    # for backends that declare more, or less
    "accepts.dtypes": {NUMPY},
    "accepts.strided_put": {NUMPY, XLA_CPU, EXPORTED},
    "accepts.zero_copy_put": {NUMPY, CPU, XLA_CPU, EXPORTED},
    "arguments.check_named_value": {XLA_CPU, EXPORTED},
    "behaviour.synchronous": {CPU, XLA_CPU, EXPORTED},
    "client.attributes": {NUMPY},
    "declared.stablehlo_version": {NUMPY},
    "events._event": {EXPORTED},
    "host.plugin_has_its_name": {EXPORTED},
    "ownership.donation": {NUMPY, CPU, XLA_CPU, EXPORTED},
    "table_buffers._put_as": {XLA_CPU, EXPORTED},
    # for backends that fail later, or earlier
    "failures.donation_failed": {NUMPY, CPU, XLA_CPU, EXPORTED},
    "failures.others": {NUMPY, CPU, XLA_CPU, EXPORTED},
    "ownership.donation_twice": {NUMPY, CPU, XLA_CPU, EXPORTED},
    "table_programs.launch_takes_older_options": {XLA_CPU},
}
"""Functions with a comparison, and the backends that pass without reaching it."""


def ending_checks() -> list[str]:
    """Returns the checks that end the process on xla-cpu-pjrt."""
    return [row["id"] for row in tomllib.loads(WAIVERS.read_text("utf-8"))["waiver"]]


@pytest.mark.timeout(0)
@pytest.mark.parametrize(
    "backend",
    [
        pytest.param(name, marks=[needs_library] * (name == XLA_CPU))
        for name in (TARGETS if WHOLE else [NUMPY])
    ],
)
def test_checks_that_pass_have_compared(backend: str) -> None:
    kind, name, options = TARGETS[backend]
    skipped = ending_checks() if backend == XLA_CPU else []
    arguments = [kind, name, json.dumps(options), json.dumps(skipped)]
    done = children.run(
        [sys.executable, "-m", "cpu.sdk.compared_lines", *arguments],
        env={**os.environ, "PYTHONPATH": children.path_with(TESTS)},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    expected = {name for name, backends in FOR_OTHERS.items() if backend in backends}
    assert set(found) == expected, found
