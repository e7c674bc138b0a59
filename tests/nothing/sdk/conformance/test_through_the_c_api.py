"""The NumPy backend has the same verdicts through the C API as in process, with few exceptions.

docs/findings.md lists them: the C API cannot express some, and the compiled core handles others for
every backend. ``nox -s sdk_long`` compares all checks, as a library and as a capsule, `nox -s sdk`
those of the chapters in which a table could make a difference, as a library.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from plugrt_sdk.conformance import Needs
from plugrt_sdk.export import export_library
from support import kit
from support.apart import runs_apart
from support.effort import WHOLE

pytestmark = [runs_apart("sdk"), pytest.mark.long, pytest.mark.timeout(0)]

PASS, REFUSED = "PASS", "REFUSED"
DIFFERENT = {
    **{name: (PASS, REFUSED) for name in kit.checks() if ".byte_order" in name},
    "programs.input_types": (PASS, REFUSED),
    "executables.input_types.partitioned": (PASS, REFUSED),
    "executables.text": (PASS, REFUSED),
    "accepts.custom_calls.unregister": (PASS, REFUSED),
}
"""Each check to its verdict in process and through the C API."""
CHAPTERS = ("client", "devices", "buffers", "programs", "declared", "executables", "topologies",
            "accepts", "ahead_of_time")  # fmt: skip
CHECKS = [
    name
    for name, check in kit.checks().items()
    if WHOLE or (name.partition(".")[0] in CHAPTERS and check.needs is not Needs.PROCESS)
]


def verdicts(kind: str, name: str) -> dict[str, str]:
    """Returns the verdicts of the applicable checks."""
    results = kit.run(kind, name, CHECKS, options={"num_devices": 2}).results
    return {name: found.verdict for name, found in results.items() if found.applies}


@pytest.fixture(scope="module")
def in_process() -> Mapping[str, str]:
    return verdicts("object", "support.conformance_mutants:in_process")


@pytest.mark.parametrize("kind", ["library", *["capsule"] * WHOLE])
def test_only_what_the_c_api_cannot_say_differs(
    kind: str, in_process: Mapping[str, str], tmp_path: Path
) -> None:
    through = (
        verdicts("object", "support.conformance_mutants:through_capsule")
        if kind == "capsule"
        else verdicts("library", str(export_library("numpy", tmp_path / "libnumpy.so")))
    )
    found = {
        name: (inside, through[name])
        for name, inside in in_process.items()
        if inside != through[name]
    }
    assert found == DIFFERENT
    assert {"FAIL", "CRASH", "TIMEOUT"}.isdisjoint(through.values())
