"""`plugrt doctor` runs a small program on each backend that starts, and checks the result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.apart import runs_apart
from support.distributions import install_plugin, run_cli

SOURCE = "from nothing.cli.sick_clients import SickPlugin\nplugin = SickPlugin({name!r})\n"

FAULTS = {
    "equalids": ("devices", "several of its 2 devices have the id 7"),
    "foreign": ("devices", "this process can use none of its 1 devices"),
    "readszeros": ("read", "was read back as [0.0, 0.0, 0.0, 0.0] instead of [1.0, -2.0, 3.5"),
    "readsdoubles": ("read", "was read back as float64[4] instead of float32[4]"),
    "wrongnumbers": ("result", "x + x was computed as [3.0, -6.0, 10.5, 3072.0] instead of [2.0"),
    "noresults": ("result", "a program of one result gave 0 lists of results"),
    "raiseswithoutwords": (
        "compile",
        "Speechless: (its message cannot be read: __str__ raises RuntimeError)",
    ),
    "raisesexit": ("compile", "SystemExit: 3"),
    "returnsnone": ("execute", "AttributeError: 'NoneType' object has no attribute 'execute'"),
}


def doctor(folder: Path, *names: str, **environ: str) -> tuple[int, dict[str, Any]]:
    for name in names:
        install_plugin(folder, name, SOURCE.format(name=name))
    done = run_cli("doctor", "--json", folders=(folder,), timeout=120,
                   JAX_PLATFORMS=",".join(names), **environ)  # fmt: skip
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    found["rows"] = {row["name"]: row for row in found["candidates"]}
    return done.returncode, found


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    code, found = doctor(tmp_path_factory.mktemp("plugins"), "healthy", *FAULTS, "chatters")
    assert code == 1
    return found


@pytest.mark.parametrize("name", FAULTS)
def test_a_backend_that_does_not_work_is_a_problem(told: dict[str, Any], name: str) -> None:
    step, words = FAULTS[name]
    row = told["rows"][name]
    assert row["state"] == "broken"
    assert row["reason"].startswith(f"it started, but does not work ({step}): ")
    assert words in row["reason"]
    assert row["cure"] == f"PLUGRT_PLUGINS_BLOCK={name} excludes it"
    (problem,) = [p for p in told["problems"] if f"'{name}' ({name}-dist 1.0)" in p]
    assert words in problem
    assert problem.endswith(f"; {row['cure']}")


def test_the_healthy_ones_work(told: dict[str, Any]) -> None:
    for name in ("healthy", "chatters"):
        assert told["rows"][name]["state"] == "initialised"
    assert len(told["problems"]) == len(FAULTS)
    assert told["chosen"][0] == "healthy"


def test_output_on_stdout_is_a_warning(told: dict[str, Any]) -> None:
    (warning,) = [w for w in told["warnings"] if "to stdout" in w]
    assert "'chatter" in warning


def test_a_backend_that_ends_the_process_in_its_trial(tmp_path: Path) -> None:
    code, found = doctor(tmp_path, "healthy", "aborts")
    assert code == 1
    row = found["rows"]["aborts"]
    assert row["state"] == "broken"
    assert "was killed by SIGABRT while trying 'aborts' (aborts-dist 1.0): compile" in row["reason"]
    assert found["rows"]["healthy"]["state"] == "initialised"
    assert len(found["problems"]) == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("abortsatexit", "was killed by SIGABRT"),
        pytest.param("hangsatexit", "had not ended after 6 s", marks=runs_apart("lifetimes")),
    ],
)
def test_a_backend_with_which_the_process_does_not_end_well(
    name: str, words: str, tmp_path: Path
) -> None:
    code, found = doctor(tmp_path, name, PLUGRT_DOCTOR_SECONDS="12")
    assert code == 1
    row = found["rows"][name]
    assert row["state"] == "broken"
    assert words in row["reason"]
    assert "when it ended, after all had worked" in row["reason"]
    (problem,) = found["problems"]
    assert words in problem
