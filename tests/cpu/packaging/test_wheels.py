"""Wheels of every distribution build, install into an empty environment, and run the demo there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support.markdown import ROOT

UV = Path(sys.executable).parent / "uv"
DISTRIBUTIONS = {"plugrt", "plugrt_cpu", "plugrt_cuda", "plugrt_tpu", "plugrt_sdk"}

pytestmark = pytest.mark.skipif(not UV.exists(), reason="uv is not in this environment")


def _run(*command: object, cwd: Path = ROOT, **environment: str) -> str:
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd, env={**env, **environment}, capture_output=True, text=True, timeout=280,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command} fails:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The wheels, built from copies, so that the tree stays as it is."""
    folder = tmp_path_factory.mktemp("wheels")
    sources = tmp_path_factory.mktemp("sources")
    for project in ("runtime", "plugin_sdk", *(f"plugins/{n}" for n in ("cpu", "cuda", "tpu"))):
        files = _run("git", "ls-files", "-co", "--exclude-standard", project).splitlines()
        for name in filter(lambda n: (ROOT / n).is_file(), files):
            copy = sources / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes((ROOT / name).read_bytes())
        # No build isolation: setuptools is here, and nothing need be fetched.
        _run(UV, "build", "--wheel", "--no-build-isolation", "--offline", "--python",
             sys.executable, "--out-dir", folder, sources / project)  # fmt: skip
    return sorted(folder.glob("*.whl"))


def test_every_distribution_is_a_pure_typed_wheel(wheels: list[Path]) -> None:
    assert {w.name.split("-")[0] for w in wheels} == DISTRIBUTIONS
    for wheel in wheels:
        names = zipfile.ZipFile(wheel).namelist()
        assert any(name.endswith("/py.typed") for name in names), wheel.name
        assert any("licenses/LICENSE" in name for name in names), f"{wheel.name} has no licence"
        assert not any(name.startswith("tests") for name in names), wheel.name


def test_installed_wheels_run_the_demo(wheels: list[Path], tmp_path: Path) -> None:
    """What a user gets, not the working tree: dependencies from the lock, ours from the wheels."""
    pytest.importorskip("sklearn", reason="the demo's data come with scikit-learn")
    place = tmp_path / "venv"
    _run(
        UV, "sync", "--frozen", "--offline", "--quiet", "--no-install-workspace", "--no-dev",
        "--only-group", "installed", "--python", sys.executable,
        UV_PROJECT_ENVIRONMENT=str(place),
    )  # fmt: skip
    python = place / "bin/python"
    _run(UV, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", python, *wheels)
    where = _run(python, "-c", "import plugrt; print(plugrt.__file__)", cwd=tmp_path)
    assert where.startswith(str(place))
    printed = _run(place / "bin/plugrt", "demo", "--json", cwd=tmp_path, JAX_NUM_CPU_DEVICES="4")
    runs = json.loads(printed)["runs"]
    assert [run["devices"] for run in runs] == [1, 4]
    assert all(run["accuracy"] >= 0.95 for run in runs), runs
