"""A child process's end is reported, and none of its processes remains."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugrt.processes.run_in_child import Outcome, run_in_child
from support.leftovers import VARIABLE, left_after, processes_with, wait_for
from unit.processes.child_targets import HERE

TESTS = Path(__file__).parents[2]


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A token in the environment of every child; at the end there are none."""
    token = uuid.uuid4().hex
    monkeypatch.setenv(VARIABLE, token)
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    yield token
    assert left_after(token) == {}


def run(target: str, argument: Any, seconds: float = 20.0, **env: str) -> Outcome:
    return run_in_child(f"{HERE}:{target}", argument, seconds, env=env)


@pytest.mark.usefixtures("token")
def test_output_and_results_of_a_function() -> None:
    outcome = run("echo", {"a": [1, None]}, X="x")
    assert outcome.succeeded
    ready, said = outcome.lines
    assert ready == {"ready": True}
    assert said["argument"] == {"a": [1, None]}
    assert said["env"] == "x"
    assert said["group"] == said["pid"] != os.getpgid(0), "signals to its group do not reach us"
    assert (outcome.output, outcome.printed, outcome.errors) == ("a word\n", 7, "another\n")
    assert outcome.left == 0


@pytest.mark.parametrize(
    ("target", "argument", "words"),
    [
        ("leave", 0, "ended with exit code 0"),
        ("leave", 3, "ended with exit code 3"),
        ("fail", None, "ended with exit code 1"),
        ("stop", "file", "was stopped by SIGSTOP"),
        ("stop_group", "file", "was stopped by SIGSTOP"),
        ("kill_group", "file", "was killed by SIGKILL"),
        ("real_time_signal", "file", "was killed by signal 40"),
        ("kill_keeper", "file", "was lost"),
        ("term_keeper", "file", "was lost"),
        ("stop_keeper", "file", "was lost: it stopped the process that watches it"),
    ],
)
@pytest.mark.usefixtures("token")
def test_how_it_ended(target: str, argument: object, words: str, tmp_path: Path) -> None:
    argument = str(tmp_path / "pids") if argument == "file" else argument
    outcome = run(target, argument)
    assert outcome.ending == words
    assert outcome.succeeded is (words == "ended with exit code 0")
    if target == "fail":
        assert outcome.last_output(1) == "KeyError: 'no such thing'"


@pytest.mark.parametrize("target", ["close_all", "replace_all"])
@pytest.mark.usefixtures("token")
def test_a_report_that_was_closed_is_told(target: str, tmp_path: Path) -> None:
    outcome = run(target, str(tmp_path / "pids"))
    assert outcome.lost_report
    assert outcome.lines == ({"ready": True},)


@pytest.mark.usefixtures("token")
def test_a_flood_is_counted_and_its_end_kept() -> None:
    outcome = run("flood", None)
    assert outcome.succeeded
    assert outcome.printed == 6_000_000
    assert outcome.output.startswith("noise noise")
    assert len(outcome.errors) <= 4096
    assert outcome.last_output(1) == "the  [31mlast"
    assert outcome.lines[-1] == {"done": True}


@pytest.mark.parametrize("target", ["sleep", "spin", "deaf", "family"])
@pytest.mark.usefixtures("token")
def test_a_process_beyond_its_limit_is_ended(target: str, tmp_path: Path) -> None:
    file = tmp_path / "pids"
    many = 4 if target == "family" else 1
    for seconds in (float(many), 20.0, 100.0):  # on a busy machine some may start late
        file.write_text("")
        outcome = run(target, str(file), seconds)
        if len(pids := file.read_text().split()) == many:
            break
    assert (outcome.how, outcome.ending) == ("deadline", f"had not ended after {seconds:g} s")
    assert len(pids) == many
    assert not any(Path("/proc", pid).exists() for pid in pids), "ended when the call returns"


@pytest.mark.usefixtures("token")
def test_a_function_limits_its_own_steps(tmp_path: Path) -> None:
    heard: list[int] = []

    def hear(line: dict[str, Any]) -> None:
        if "number" in line:
            heard.append(line["number"])
            (tmp_path / str(heard[-1])).touch()  # lets the function continue meanwhile

    argument = {"folder": str(tmp_path), "limits": [60.0, 60.0, 0.5]}
    outcome = run_in_child(f"{HERE}:steps", argument, 60, on_line=hear)
    assert outcome.how == "deadline"
    assert heard == [0, 1, 2]
    assert [line["number"] for line in outcome.lines[1:]] == [0, 1, 2]


@pytest.mark.usefixtures("token")
def test_the_limit_of_a_step_does_not_prolong_the_whole(tmp_path: Path) -> None:
    argument = {"folder": str(tmp_path), "limits": [600.0]}
    for seconds in (1.0, 20.0, 100.0):  # on a busy machine the child may start late
        outcome = run_in_child(f"{HERE}:steps", argument, seconds)
        if len(outcome.lines) > 1:
            break
    assert (outcome.how, outcome.lines[1]["number"]) == ("deadline", 0)


@pytest.mark.usefixtures("token")
def test_daemons_are_ended_and_counted(tmp_path: Path) -> None:
    outcome = run("daemon", str(tmp_path / "pids"))
    assert outcome.succeeded
    assert outcome.left == 1


@pytest.mark.parametrize("hang", [False, True])
@pytest.mark.usefixtures("token")
def test_a_child_of_a_child_ends_before_it(hang: bool, tmp_path: Path) -> None:
    argument = {"target": "sleep", "file": str(tmp_path / "pids"), "hang": hang}
    outcome = run("nested", argument, seconds=4.0)
    assert outcome.how == ("deadline" if hang else "exit")
    (said,) = outcome.lines[1:]
    assert said["how"] == "deadline"
    assert 0 < said["seconds"] < 4


@pytest.mark.usefixtures("token")
def test_a_process_that_cannot_start_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    outcome = run("echo", None)
    assert outcome.how == "lost"
    assert "/nowhere/python" in outcome.ending


PARENT = f"""
import json, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests' is ignored
from plugrt.processes.run_in_child import run_in_child
run_in_child("{HERE}:nested", json.loads(sys.argv[1]), 600)
"""


@pytest.mark.parametrize("target", ["sleep", "spin", "family"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSEGV])
def test_nothing_outlives_the_parent(
    token: str, number: signal.Signals, target: str, tmp_path: Path
) -> None:
    file = tmp_path / "pids"
    argument = {"target": target, "file": str(file), "hang": True}
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, json.dumps(argument)], stderr=subprocess.DEVNULL,
        process_group=0,
    ) as parent:  # fmt: skip
        many = 4 if target == "family" else 1
        deadline = time.monotonic() + 60
        while len(wait_for(file).split()) < many and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(processes_with(token)) >= 5, "parent, two keepers and two children"
        parent.send_signal(number)
        parent.wait(100)
    assert left_after(token) == {}


def test_nothing_outlives_a_parent_whose_pipe_another_process_holds(
    token: str, tmp_path: Path
) -> None:
    """A fork of the parent keeps the pipe open, so its closing does not show the parent's end."""
    file = tmp_path / "pids"
    code = f"""
import os, sys, threading, time
from plugrt.processes.run_in_child import run_in_child
threading.Thread(target=run_in_child, args=("{HERE}:sleep", sys.argv[1], 600), daemon=True).start()
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
if os.fork() == 0:
    time.sleep(60)
    os._exit(0)
os.kill(os.getpid(), 9)
"""
    with subprocess.Popen([sys.executable, "-c", code, str(file)]) as parent:
        parent.wait(60)
    child = int(wait_for(file))
    deadline = time.monotonic() + 60
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(f"/proc/{child}").exists()
    for pid in processes_with(token):
        os.kill(pid, signal.SIGKILL)  # the fork


def test_the_last_output_is_the_reason_and_not_the_stack() -> None:
    """jax-tt-plugin and XLA print a stack after the reason."""
    stack = [" --- /lib/libc.so.6(+0x2724a) [0x7fd3f304524a]", "    @     0x7f3d72592d27  f()"]
    assert Outcome("signal", 6, errors="\n".join(["No chips", *stack])).last_output() == "No chips"
    assert Outcome("signal", 6, errors="\n".join(stack)).last_output(1) == stack[1].strip()
