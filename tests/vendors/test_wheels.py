"""Other people's wheels, each in an environment of its own and without its hardware.

``.venv/bin/nox -s wheels`` downloads them, 2 GB. ``docs/data/wheels.toml`` lists them with the
facts that doctor must state of each; docs/plugins.md has a table of it.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from support.distributions import PATIENT
from support.installed import (
    UV,
    add_packages,
    attempt,
    build_wheels,
    download_wheel,
    environment,
    environment_above,
    needs_uv,
    run,
)  # fmt: skip
from support.markdown import ROOT
from support.programs import DOT
from vendors.cpu_libraries import FAILS, KIT, compare_with_kit, run_programs

pytestmark = [
    needs_uv,
    pytest.mark.skipif(
        os.environ.get("PLUGRT_TEST_TARGET") != "wheels",
        reason="downloads 2 GB: .venv/bin/nox -s wheels",
    ),
]
WHEELS: list[dict[str, Any]] = tomllib.loads((ROOT / "docs/data/wheels.toml").read_text())["wheels"]
WORKS = {"initialised", "not announced"}
OURS = "cpu,cuda,numpy,tpu"
COMPILE = """
import sys, plugrt
compiled = plugrt.compile(sys.argv[1], topology=sys.argv[2])
print(compiled.cost_analysis()["flops"], compiled.memory_analysis().output_size_in_bytes)
"""

AFTER_JAX = """
import sys, jax, numpy as np
name, data = sys.argv[1], np.arange(4, dtype=np.float32)
def by_jax():
    return float(jax.jit(lambda x: (x + 1).sum())(jax.device_put(data, jax.devices(name)[0])))
first = by_jax()
import plugrt
print(first, float(plugrt.jit(lambda x: (x + 1).sum(), backend=name)(data)), by_jax())
"""


@dataclass(frozen=True)
class Installed:
    """A wheel of the list, and the environment that it is installed in, with jax or without."""

    wheel: dict[str, Any]
    python: Path
    jax: bool

    @property
    def is_announced(self) -> bool:
        """Whether an entry point names its library, if it has one."""
        return self.wheel.get("state") != "not announced"

    def run(self, *arguments: str, **env: str) -> tuple[int, str]:
        """Runs Python with these arguments; returns the exit code and its output."""
        # jax-tt-plugin unpacks 400 MB into the temporary folder as it is loaded.
        patient = {**PATIENT, "PLUGRT_DOCTOR_SECONDS": "300"}
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "TPU_SKIP_MDS_QUERY": "1", "XLA_FLAGS": "", **patient}
        done = attempt(self.python, *arguments, cwd=self.python.parent, env=quiet | env)
        return done.returncode, done.stdout or done.stderr

    def doctor(self, **env: str) -> tuple[int, list[dict[str, Any]]]:
        """Returns doctor's exit code, and the rows of the wheel's package and libraries."""
        code, printed = self.run("-m", "plugrt", "doctor", "--json", **env)
        rows = json.loads(printed)["candidates"]
        place = str(self.python.parents[1])
        provider = self.wheel.get("provider", self.wheel["package"])
        of_wheel = [row for row in rows if row["distribution"] == provider]
        return code, of_wheel or [row for row in rows if row["library"].startswith(place)]

    def library(self) -> str:
        """Returns the path of the wheel's library."""
        name = self.wheel["names"][0]
        _, [row] = self.doctor(JAX_PLATFORMS=name) if self.is_announced else self.doctor()
        return str(row["library"])


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with plugrt, without jax."""
    folder = tmp_path_factory.mktemp("base")
    return environment("installed", folder / "venv", *build_wheels(folder))


@pytest.fixture(scope="session")
def jax(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with jax, in the installed version."""
    folder = tmp_path_factory.mktemp("jax")
    packages = [f"{name}=={version(name)}" for name in ("jax", "opt-einsum")]
    run(UV, "pip", "install", "--quiet", "--no-deps", "--target", folder, *packages)
    return folder


@pytest.fixture(scope="module", params=WHEELS, ids=lambda wheel: wheel["package"])
def download(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], Path]:
    """A wheel of the list, and its file."""
    wheel, folder = request.param, tmp_path_factory.mktemp("download")
    return wheel, download_wheel(wheel["package"], wheel["version"], folder)


@pytest.fixture(scope="module", params=["without jax", "with jax"])
def installed(
    request: pytest.FixtureRequest, download: tuple[dict[str, Any], Path], base: Path, jax: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Installed]:  # fmt: skip
    wheel, file = download
    place = tmp_path_factory.mktemp("place")
    python = environment_above(base, place / "venv", file)
    if with_jax := request.param == "with jax":
        add_packages(python, jax)
    yield Installed(wheel, python, with_jax)
    run("rm", "-r", place)  # gigabytes, which pytest would keep


def test_the_row_has_its_name_and_state(installed: Installed) -> None:
    """Jax makes no state worse; every failure has a reason and a cure."""
    wheel = installed.wheel
    if not wheel["names"]:
        code, rows = installed.doctor()
        assert (code, rows) == (0, [])
        return
    for name in wheel["names"]:
        env = {"JAX_PLATFORMS": name} if installed.is_announced else {}
        code, [row] = installed.doctor(**env, **wheel.get("env", {}))
        assert code == (wheel["state"] not in WORKS), row
        assert (row["name"], row["state"]) == (wheel["names"][0], wheel["state"]), row
        assert "provider" in wheel or row["version"] == wheel["version"]
        assert [word for word in wheel["words"] if word not in row["reason"]] == [], row["reason"]
        assert row["cure"] or wheel["state"] == "initialised"
        assert "0x" not in row["reason"]


def test_the_line_of_the_row_loads_a_library_that_nothing_announces(installed: Installed) -> None:
    if installed.is_announced or not installed.wheel["names"]:
        pytest.skip("it is announced, or no plugin")
    _, [row] = installed.doctor()
    variable, _, value = row["cure"].removesuffix(" loads it").partition("=")
    code, [row] = installed.doctor(**{variable: value, "JAX_PLATFORMS": row["name"]})
    assert (code, row["state"]) == (0, "initialised")


@pytest.mark.parametrize("core", ["c", "python"])
def test_a_program_that_asks_for_devices_is_not_ended(installed: Installed, core: str) -> None:
    """With plugrt and no plugin of this repository. Earlier, jax-tt-plugin ended the process."""
    wheel = installed.wheel
    if not wheel["names"]:
        pytest.skip("it is no plugin")
    for name in ["", *(wheel["names"] if installed.is_announced else [])]:
        env = {"JAX_PLATFORMS": name} if name else {}
        code, printed = installed.run(
            "-c", "import plugrt; plugrt.devices()", PLUGRT_PLUGINS_BLOCK=OURS, PLUGRT_CORE=core,
            **env,
        )  # fmt: skip
        assert code == (wheel["state"] != "initialised"), printed
        assert code == 0 or "\nplugrt.errors." in printed, printed


def test_a_library_for_cpus_runs_the_programs_and_the_kit(
    installed: Installed, tmp_path: Path
) -> None:
    package, report = installed.wheel["package"], tmp_path / "report.json"
    if package not in FAILS or installed.jax:
        pytest.skip("it runs no program, or did so without jax")
    run_programs(package, library := installed.library())
    installed.run("-m", "plugrt", "conform", library, *KIT, f"--report={report}")
    compare_with_kit(package, report)


def test_a_library_that_jax_has_started_runs_programs(installed: Installed) -> None:
    """Jax is imported before plugrt, and loads the library first."""
    if installed.wheel.get("state") not in WORKS or not installed.jax:
        pytest.skip("it runs no program, or there is no jax")
    name = installed.wheel["names"][0]
    env = {"PJRT_NAMES_AND_LIBRARY_PATHS": f"{name}:{installed.library()}"}
    code, printed = installed.run("-c", AFTER_JAX, name, JAX_PLATFORMS=f"{name},cpu", **env)
    assert (code, printed) == (0, "10.0 10.0 10.0\n")


def test_it_compiles_for_devices_that_are_not_here(installed: Installed) -> None:
    topologies = installed.wheel.get("topologies", [])
    if not topologies:
        pytest.skip("it compiles for none")
    for topology in topologies:
        code, printed = installed.run("-c", COMPILE, DOT, topology)
        assert code == 0, printed
        flops, size = map(float, printed.split())
        product = 2 * 256 * 512 * 128  # each library counts tanh in its own way
        assert product <= flops <= 1.02 * product
        assert size == 4 * 256 * 128
