"""Wheels of every distribution build, install into an empty environment, and run the demo there."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from support.apart import runs_apart
from support.installed import RELEASE, environment, needs_uv, run

DISTRIBUTIONS = {
    "plugrt", "plugrt_cpu", "plugrt_cuda", "plugrt_numpy", "plugrt_remote", "plugrt_tpu",
    "plugrt_sdk",
}  # fmt: skip

pytestmark = [needs_uv, runs_apart("packages"), pytest.mark.long, pytest.mark.timeout(900)]


def test_every_distribution_is_a_typed_wheel_that_states_whether_it_has_c(
    wheels: list[Path],
) -> None:
    assert {w.name.split("-")[0] for w in wheels} == DISTRIBUTIONS
    for wheel in wheels:
        names = zipfile.ZipFile(wheel).namelist()
        assert any(name.endswith("/py.typed") for name in names), wheel.name
        assert any("licenses/LICENSE" in name for name in names), f"{wheel.name} has no licence"
        assert not any(name.startswith("tests") for name in names), wheel.name
        compiled = [name for name in names if name.endswith((".so", ".pyd", ".dylib"))]
        tag = wheel.stem.split("-", 2)[2]
        if compiled:
            parts = RELEASE.IN_C[wheel.name.split("-")[0].replace("_", "-")]
            assert sorted(compiled) == [f"{part}.abi3.so" for part in parts]
            assert tag.startswith("cp311-abi3-")
        else:
            assert tag == "py3-none-any"


def test_installed_wheels_run_the_demo(wheels: list[Path], tmp_path: Path) -> None:
    """The environment has these wheels and locked dependencies, and not the working tree."""
    pytest.importorskip("sklearn", reason="the demo's data come with scikit-learn")
    place = tmp_path / "venv"
    python = environment("installed", place, *wheels)
    where = run(python, "-c", "import plugrt; print(plugrt.__file__)", cwd=tmp_path).stdout
    assert where.startswith(str(place))
    printed = run(
        place / "bin/plugrt", "demo", "--json", cwd=tmp_path, env={"JAX_NUM_CPU_DEVICES": "4"}
    ).stdout
    runs = json.loads(printed)["runs"]
    assert [r["devices"] for r in runs] == [1, 4, 4]
    assert all(r["accuracy"] >= 0.95 for r in runs), runs
