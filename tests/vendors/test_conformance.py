"""`plugrt conform` on vendors' libraries, on machines without their devices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plugrt_cuda import hardware as gpu
from plugrt_cuda import library as cuda
from plugrt_tpu import hardware as tpu
from support import kit
from support.distributions import run_cli
from support.requirements import file_of, needs, needs_package

NEEDS_NONE = {name for name, check in kit.checks().items() if not check.needs.has_client}
LEVEL_0 = {name for name in NEEDS_NONE if kit.checks()[name].level == 0}
AHEAD_OF_TIME = NEEDS_NONE - LEVEL_0

no_gpu = pytest.mark.skipif(gpu.detect().available, reason="this machine has an NVIDIA driver")
no_tpu = pytest.mark.skipif(tpu.detect().is_tpu_machine, reason="this machine has TPUs")


def conform(folder: Path, name: str, *arguments: str) -> dict[str, set[str]]:
    """Returns the ids of the checks by verdict; checks that do not apply have an empty verdict.

    The exit code counts failures.
    """
    file = folder / "report.json"
    done = run_cli("conform", name, "--report", str(file), *arguments, timeout=240)
    report: dict[str, Any] = json.loads(file.read_text())
    assert report["level"] == 0
    assert len(report["plugin"]["library_sha256"]) == 64
    found: dict[str, set[str]] = {}
    for row in report["checks"]:
        found.setdefault(row["verdict"] if row.get("applies", True) else "", set()).add(row["id"])
    assert not found.keys() - {"PASS", "FAIL", "NO-HARDWARE", ""}
    assert done.returncode == bool(found.get("FAIL")), done.stdout + done.stderr
    return found


@needs_package("libtpu", "vendors")
@no_tpu
def test_libtpu(tmp_path: Path) -> None:
    found = conform(tmp_path, str(file_of("libtpu", "libtpu.so")))
    assert "FAIL" not in found
    assert found["PASS"] | found.get("", set()) == LEVEL_0 | AHEAD_OF_TIME
    assert found["NO-HARDWARE"] == kit.checks().keys() - NEEDS_NONE


@needs_package("libtpu", "vendors")
@no_tpu
def test_the_tpu_plugin(tmp_path: Path) -> None:
    found = conform(tmp_path, "tpu", "--jobs", "2")
    assert found["PASS"] | found.get("", set()) == LEVEL_0 | AHEAD_OF_TIME
    assert found["NO-HARDWARE"] == kit.checks().keys() - NEEDS_NONE


@no_gpu
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=needs_package(name, "vendors"))
        for name in ("jax-cuda12-pjrt", "jax-cuda13-pjrt")
    ],
)
def test_a_library_for_cuda_knows_no_topology_without_a_gpu(name: str, tmp_path: Path) -> None:
    found = conform(tmp_path, str(file_of(name, "xla_cuda_plugin.so")))
    assert found["PASS"] | found.get("", set()) == LEVEL_0
    assert found["NO-HARDWARE"] == kit.checks().keys() - LEVEL_0


@no_gpu
@needs(cuda.installed(), "jax-cuda12-pjrt or jax-cuda13-pjrt", session="vendors")
def test_the_cuda_plugin_compiles_for_a_gpu_that_it_names(tmp_path: Path) -> None:
    found = conform(tmp_path, "cuda")
    assert found["PASS"] | found.get("", set()) == LEVEL_0 | AHEAD_OF_TIME - {
        "ahead_of_time.compile.devices"
    }
    assert found["FAIL"] == {"ahead_of_time.compile.devices"}, "see docs/findings.md"
    assert found["NO-HARDWARE"] == kit.checks().keys() - NEEDS_NONE
