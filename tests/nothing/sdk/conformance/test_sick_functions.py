"""The runner outlives what libraries in C do to their process, and blames the right check."""

from __future__ import annotations

import json
import signal
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugrt_sdk.conformance import registry, runner
from plugrt_sdk.conformance.runner import Runner
from plugrt_sdk.conformance.target import Target
from plugrt_sdk.conformance.verdict import Result, Verdict
from support import children
from support.apart import runs_apart
from support.clib import needs_cc
from support.leftovers import VARIABLE, left_after, wait_for
from support.sick_functions import SickFunctions

pytestmark = [runs_apart("test-sdk"), needs_cc]

BEFORE, AT, AFTER = "buffers.put_get.scalar", "programs.add", "buffers.put_get.one"
PASS, CRASH, TIMEOUT = Verdict.PASS, Verdict.CRASH, Verdict.TIMEOUT


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> SickFunctions:
    return SickFunctions(tmp_path_factory.mktemp("sick"))


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A token in the environment of every process of the run; at the end there are none."""
    token = uuid.uuid4().hex
    monkeypatch.setenv(VARIABLE, token)
    yield token
    assert left_after(token) == {}


def run(library: Path, *names: str, seconds: float = 60.0) -> dict[str, Result]:
    checks = [registry.find(name) for name in names]
    return Runner(Target("library", str(library)), checks, seconds).run()


@pytest.mark.parametrize(
    ("what", "verdict", "words"),
    [
        ("abort_in_thread", CRASH, "SIGABRT; its last output: frobnitz: a thread gives up"),
        ("throw", CRASH, "SIGABRT; its last output: terminate called after throwing"),
        ("kill_parent", CRASH, "lost"),
        ("deaf", TIMEOUT, "it had not ended"),
        ("write_everywhere", PASS, ""),
        ("fork", PASS, ""),
        ("daemon", PASS, ""),
    ],
)
def test_a_function_that_harms_its_process(
    made: SickFunctions, what: str, verdict: Verdict, words: str
) -> None:
    seconds = 8.0 if verdict is TIMEOUT else 60.0
    found = run(made.library("Client_Compile", what), BEFORE, AT, AFTER, seconds=seconds)
    assert [(name, result.verdict) for name, result in found.items()] == [
        (BEFORE, PASS), (AT, verdict), (AFTER, PASS)
    ]  # fmt: skip
    assert words in found[AT].got


def test_a_library_that_does_not_let_its_process_end(made: SickFunctions) -> None:
    found = run(made.library("end", "hang"), BEFORE, "client.exit", seconds=8.0)
    assert [result.verdict for result in found.values()] == [PASS, TIMEOUT]
    assert found["client.exit"].got == "the check had ended, and the process had not"


def test_a_chapter_that_hangs_is_given_up(made: SickFunctions) -> None:
    chapters = ("programs.", "forms.", "recovery.")
    names = [check.id for words in chapters for check in registry.select(words=words)]
    found = run(made.library("Client_Compile", "hang"), *names, seconds=4.0)
    for chapter, most in zip(chapters, (3, 1, 1), strict=True):
        of = [result for name, result in found.items() if name.startswith(chapter)]
        assert [r.verdict for r in of].count(TIMEOUT) == most
        said = f"{most} check{'s' * (most > 1)} of {chapter[:-1]} had not ended in time"
        assert f"{said}; --check ID runs one of them" in {result.got for result in of}


def test_a_chapter_that_crashes_is_given_up(made: SickFunctions) -> None:
    chosen = registry.select(words="programs.")
    names = [check.id for check in chosen if check.id.startswith("programs.")]
    found = run(made.library("Client_Compile", "segv"), *names, BEFORE)
    verdicts = [found[name].verdict for name in names]
    assert verdicts == [CRASH] * 5 + [Verdict.NOT_RUN] * (len(names) - 5)
    said = "5 checks of programs, one after the other, had ended their process"
    assert found[names[-1]].got == f"{said}; --check ID runs one of them"
    assert found[BEFORE].verdict is PASS


def test_a_library_whose_client_hangs_is_given_little_time(
    made: SickFunctions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_LEAST_SECONDS", 1.0)
    names = [check.id for check in registry.select(words="abi.")]
    found = run(made.library("load", "hang"), *names, AT, seconds=6.0)
    late = [name for name, result in found.items() if result.verdict is TIMEOUT]
    assert late == ["client.create", names[0]]
    assert found["client.create"].expected == "an end within 6 s"
    assert found[names[0]].expected == "an end within 2 s"
    rest = {found[name].got for name in names[1:]}
    assert rest == {"1 check of abi had not ended in time; --check ID runs one of them"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_process(
    made: SickFunctions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setenv("SICK_FILE", str(tmp_path / "hangs"))
    library = str(made.library("Client_Compile", "hang"))
    checks = [f"--check={name}" for name in (BEFORE, AT, AFTER)]
    command = [sys.executable, "-m", "plugrt", "conform", library, "--jobs=2", "--json=r.json"]
    with children.start([*command, *checks], cwd=tmp_path) as process:
        wait_for(tmp_path / "hangs")
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    if number is signal.SIGINT:
        assert (process.returncode, "interrupted" in errors) == (130, True)
        rows = json.loads((tmp_path / "r.json").read_text())["checks"]
        [row] = [row for row in rows if row["id"] == AT]
        assert (row["verdict"], row["got"]) == ("NOT-RUN", "the run was interrupted before its end")
