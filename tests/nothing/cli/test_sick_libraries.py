"""`plugrt doctor` and `plugrt devices` over misbehaving libraries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.apart import runs_apart
from support.clib import needs_cc
from support.distributions import install_plugin, run_cli
from support.doctor import show
from support.leftovers import VARIABLE, left_after, processes_with
from support.native_core import with_plain_crashes
from support.sick_libraries import ODD, SICK, make_libraries

pytestmark = [needs_cc, pytest.mark.long]
of_all = runs_apart("lifetimes")
"""For tests that need doctor's report on all libraries: the other tests use some of each kind."""


class Told(NamedTuple):
    """Doctor's report on all libraries, and the remaining processes."""

    found: dict[str, Any]
    code: int
    noise: str
    left: dict[int, str]


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_libraries(tmp_path_factory.mktemp("libraries"))


def variable(libraries: dict[str, Path], *names: str) -> str:
    return ",".join(f"{name}:{libraries[name]}" for name in names or libraries)


@pytest.fixture(scope="module")
def told(libraries: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Told:
    folder, token = tmp_path_factory.mktemp("installed"), uuid.uuid4().hex
    install_plugin(folder, "a")
    environ = {VARIABLE: token, "PLUGRT_PROBE_SECONDS": "4", "PLUGRT_DOCTOR_SECONDS": "1000"}
    done = run_cli(
        "doctor", "--json", folders=(folder,), timeout=280, JAX_PLATFORMS="a",
        PJRT_NAMES_AND_LIBRARY_PATHS=variable(libraries), **environ, **with_plain_crashes(),
    )  # fmt: skip
    return Told(json.loads(done.stdout), done.returncode, done.stderr, left_after(token))


def row(told: Told, name: str) -> dict[str, Any]:
    (one,) = [r for r in told.found["candidates"] if r["name"] == name]
    assert isinstance(one, dict)
    return one


@of_all
def test_doctor_survives_and_leaves_no_process(told: Told) -> None:
    assert told.code == 1
    assert told.noise == ""
    assert told.left == {}
    assert told.found["chosen"] == ["a"]
    assert row(told, "a")["state"] == "initialised"


@of_all
@pytest.mark.parametrize("name", SICK)
def test_a_sick_library_is_one_problem_that_says_why(told: Told, name: str) -> None:
    state, words = SICK[name]
    found = row(told, name)
    assert found["state"] == state
    (problem,) = [p for p in told.found["problems"] if p.startswith(f"{name!r} (")]
    assert "PJRT_NAMES_AND_LIBRARY_PATHS" in problem
    assert f"/{name}.so" in problem
    assert found["cure"]
    assert problem.endswith(f"; {found['cure']}")
    assert "\n" not in problem
    for word in words:
        assert word in found["reason"]
        assert word in problem
    if "did not return" in found["reason"]:
        assert "PLUGRT_PROBE_SECONDS" in found["cure"]


@of_all
@pytest.mark.parametrize("name", ODD)
def test_an_odd_library_works_and_is_remarked_upon(told: Told, name: str) -> None:
    found = row(told, name)
    assert found["probe"]["state"] == "ok"
    assert found["state"] == "not selected"
    assert not [p for p in told.found["problems"] if p.startswith(f"{name!r} (")]
    remarks = found["probe"]["facts"]["remarks"]
    assert not ODD[name] or [r for r in remarks if r.startswith(ODD[name])]
    said = [w for w in told.found["warnings"] if w.startswith(f"{name!r} (")]
    assert len(said) == len(remarks)


@of_all
def test_nothing_else_is_a_problem(told: Told) -> None:
    assert len(told.found["problems"]) == len(SICK)


@of_all
def test_the_terminal_shows_each_fault_once(told: Told) -> None:
    shown = show(told.found, 10_000).splitlines()
    problems = [line for line in shown if line.startswith("problem: ")]
    assert sorted(problems) == sorted(f"problem: {p}" for p in told.found["problems"])
    for name in SICK:
        found = row(told, name)
        rows = [line for line in shown if line.split()[:1] == [name]]
        (line,) = [line for line in rows if f"{found['reason']}; {found['cure']}" in line]
        assert found["state"] in line
    assert shown[-1].startswith("something requested does not work")


AT_START = ("load_abort", "load_stop", "init_exit0", "closes_stdout", "client_hang")
AT_END = ("end_abort", "end_hang", "end__exit3", "end_segv")


@pytest.mark.parametrize("names", [AT_START, AT_END], ids=["start", "end"])
def test_devices_goes_on_without_them(
    libraries: dict[str, Path], names: tuple[str, ...], tmp_path: Path
) -> None:
    install_plugin(tmp_path, "good", priority=10)
    token = uuid.uuid4().hex
    environ = {
        VARIABLE: token,
        "PLUGRT_PROBE_SECONDS": "1.5",  # per library; two of them hang
        "PLUGRT_PLUGINS_ALLOW": ",".join([*names, "good"]),
        "PJRT_NAMES_AND_LIBRARY_PATHS": variable(libraries, *names),
        **with_plain_crashes(),
    }
    done = run_cli("devices", "--json", folders=(tmp_path,), timeout=120, **environ)
    assert done.returncode == 0, done.stderr
    assert [device["platform"] for device in json.loads(done.stdout)] == ["good"]
    assert left_after(token) == {}
    assert "Traceback" not in done.stderr
    for name in names:  # one line per library, with its name and a cure
        (line,) = [x for x in done.stderr.splitlines() if f"left out: {name!r}" in x]
        assert SICK[name][1][0] in line
        assert "PLUGRT_" in line


def test_asked_for_by_name_it_is_an_error(libraries: dict[str, Path]) -> None:
    done = run_cli("devices", timeout=120, JAX_PLATFORMS="end_abort", PLUGRT_PROBE_SECONDS="10",
                   PJRT_NAMES_AND_LIBRARY_PATHS=variable(libraries, "end_abort"))  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("error: JAX_PLATFORMS=end_abort requests 'end_abort'")
    assert "SIGABRT when the process ended, after all had worked" in done.stderr
    assert "Traceback" not in done.stderr


def test_doctor_that_is_killed_leaves_no_process(libraries: dict[str, Path]) -> None:
    token = uuid.uuid4().hex
    names = ("load_hang", "load_spin", "load_deaf", "load_family")
    environ = {
        **os.environ,
        VARIABLE: token,
        "JAX_PLATFORMS": "load_hang",
        "PJRT_NAMES_AND_LIBRARY_PATHS": variable(libraries, *names),
    }
    command = [sys.executable, "-m", "plugrt", "doctor", "--json"]
    with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while len(processes_with(token)) < 5 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(processes_with(token)) >= 5, "doctor, two keepers and two children"
        process.kill()
        process.wait(30)
    assert left_after(token) == {}
