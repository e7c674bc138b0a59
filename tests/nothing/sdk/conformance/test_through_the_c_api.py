"""The NumPy backend has the verdicts through a capsule that it has in process, but for a few.

They are listed in docs/findings.md: the C API has no words for some, and the compiled core answers
others for every backend.
"""

from __future__ import annotations

import pytest

from plugrt_sdk.conformance import registry
from plugrt_sdk.conformance.check import Needs
from plugrt_sdk.conformance.runner import Runner
from plugrt_sdk.conformance.target import Target
from plugrt_sdk.conformance.verdict import Verdict
from support.apart import runs_apart

pytestmark = runs_apart("test-sdk")

PASS, REFUSED = Verdict.PASS, Verdict.REFUSED
DIFFERENT = {
    **{name: (PASS, REFUSED) for name in registry.checks() if ".byte_order" in name},
    "programs.input_types": (PASS, REFUSED),
    "executables.text": (PASS, REFUSED),
    "executables.shardings.arguments": (REFUSED, PASS),
    "executables.shardings.results": (REFUSED, PASS),
}
"""Check to its verdict in process and through the C API."""
CHAPTERS = ("client", "devices", "buffers", "programs", "declared", "executables", "topologies",
            "accepts", "ahead_of_time")  # fmt: skip


def verdicts(target: Target) -> dict[str, Verdict]:
    checks = [
        check
        for name, check in registry.checks().items()
        if name.partition(".")[0] in CHAPTERS and check.needs is not Needs.PROCESS
    ]
    return {name: found.verdict for name, found in Runner(target, checks, 60.0).run().items()}


@pytest.mark.timeout(0)
def test_only_what_the_c_api_cannot_say_differs() -> None:
    options = {"num_devices": 2}
    inside = verdicts(Target("object", "support.conformance_mutants:in_process", options))
    through = verdicts(Target("object", "support.conformance_mutants:through_capsule", options))
    found = {
        name: (inside[name], through[name]) for name in inside if inside[name] != through[name]
    }
    assert found == DIFFERENT
