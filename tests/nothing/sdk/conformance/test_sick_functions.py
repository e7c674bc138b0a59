"""The runner survives libraries in C that harm their process, and blames the right check."""

from __future__ import annotations

import json
import signal
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugrt.capi.loading import exception_guard
from plugrt_sdk.conformance import patience
from support import children, kit
from support.apart import runs_apart
from support.clib import needs_cc
from support.effort import WHOLE, some_of
from support.leftovers import VARIABLE, left_after, wait_for
from support.sick_functions import SickFunctions

pytestmark = [runs_apart("sdk"), needs_cc]

BEFORE, AT, AFTER = "buffers.put_get.scalar", "programs.add", "buffers.put_get.one"
PASS, CRASH, TIMEOUT = "PASS", "CRASH", "TIMEOUT"


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


def run(library: Path, *names: str, seconds: float = 60.0) -> dict[str, Any]:
    return kit.run("library", str(library), names, seconds).results


HARM = [
    ("abort_in_thread", CRASH, "SIGABRT; its last output: frobnitz: a thread gives up"),
    ("throw", "FAIL", "threw a C++ exception")
    if exception_guard.CATCHES
    else ("throw", CRASH, "SIGABRT; its last output: terminate called after throwing"),
    ("kill_parent", CRASH, "lost"),
    ("deaf", TIMEOUT, "it had not ended"),
    ("write_everywhere", PASS, ""),
    ("fork", PASS, ""),
    ("daemon", PASS, ""),
]
CHANGES = [
    ("handlers", "effects.signals", "it replaced the handler of SIGINT"),
    ("mask", "effects.signals", "signals in this thread"),
    ("folder", "effects.files", "it changed the working folder to /; it set the umask to 0777"),
    ("folder", "effects.environment", "PATH"),
]


@pytest.mark.parametrize(("what", "verdict", "words"), some_of(HARM, 3))
def test_a_function_that_harms_its_process(
    made: SickFunctions, what: str, verdict: str, words: str
) -> None:
    seconds = 8.0 if verdict == TIMEOUT else 60.0
    found = run(made.library("Client_Compile", what), BEFORE, AT, AFTER, seconds=seconds)
    assert [(name, result.verdict) for name, result in found.items()] == [
        (BEFORE, PASS), (AT, verdict), (AFTER, PASS)
    ]  # fmt: skip
    assert words in found[AT].got


@pytest.mark.parametrize(("what", "check", "words"), some_of(CHANGES, 1))
def test_changes_of_the_process_by_a_library_are_findings(
    made: SickFunctions, what: str, check: str, words: str
) -> None:
    found = run(made.library("Client_Create", what), check)
    assert found[check].verdict == "FAIL"
    assert words in found[check].got


def test_output_and_leftover_processes_are_notes(made: SickFunctions) -> None:
    kept = {}
    for what in ("print", "daemon", "thread"):
        found = kit.run("library", str(made.library("Client_Create", what)), [BEFORE, AT])
        assert {*found.verdicts} == {PASS}
        kept[what] = found.notes
    of = "in the process of the checks from host.import to client.create it "
    assert kept["print"] == {"printed": kept["print"]["printed"]}
    assert kept["print"]["printed"].startswith(f"{of}printed {24 << 20} bytes to stdout: ")
    assert kept["daemon"] == {"left": f"{of}left processes behind, which were ended (8)"}
    assert kept["thread"] == {}


def test_a_library_that_does_not_let_its_process_end(made: SickFunctions) -> None:
    found = run(made.library("end", "hang"), BEFORE, "client.exit", seconds=8.0)
    assert [result.verdict for result in found.values()] == [PASS, TIMEOUT]
    assert found["client.exit"].got == "the check had ended, and the process had not"


@pytest.mark.parametrize(
    "function", some_of(["Client_Compile", "Client_Destroy", "Error_Message"], 1)
)
def test_a_function_that_hangs_costs_the_limit_once(
    made: SickFunctions, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    monkeypatch.setattr(patience, "_MOST_SECONDS", 3.0)
    library = made.library(function, "hang")
    checks = [name for name in kit.checks() if name.partition(".")[0] in HANGS[function]]
    found = kit.run("library", str(library), checks, 7.0, jobs=2).results
    late = {name: result for name, result in found.items() if result.verdict == TIMEOUT}
    cut = {name: r for name, r in found.items() if r.got.startswith("it had not ended after ")}
    assert 1 <= len(late) <= 2, "of two processes each may meet it first"
    assert {name.partition(".")[0] for name in late | cut} == set(HANGS[function])
    assert len(cut) <= 2 * len(HANGS[function]), "two processes may be at one chapter"
    endings = tuple(f"{name} hangs; --check ID gives it 7 s" for name in late)
    assert all(result.got.endswith(endings) for result in cut.values())


HANGS = {
    "Client_Compile": ("programs", "forms", "recovery"),
    "Client_Destroy": ("client", "endurance"),
    "Error_Message": ("abi", "client"),  # the library refuses a client's handlers
}
"""A function that hangs, to some chapters of checks that call it."""


def test_a_chapter_that_crashes_is_given_up(made: SickFunctions) -> None:
    names = [name for name in kit.select(words="programs.") if name.startswith("programs.")]
    found = run(made.library("Client_Compile", "segv"), *names, BEFORE)
    verdicts = [found[name].verdict for name in names]
    assert verdicts == [CRASH] * 5 + ["NOT-RUN"] * (len(names) - 5)
    said = "5 checks of programs, one after the other, had ended their process"
    assert found[names[-1]].got == f"{said}; --check ID runs one of them"
    assert found[BEFORE].verdict == PASS


def test_a_library_whose_client_hangs_is_given_little_time(made: SickFunctions) -> None:
    names = kit.select(words="abi.")
    found = run(made.library("load", "hang"), *names, AT, seconds=6.0)
    assert (found["client.create"].verdict, found["client.create"].expected) == (
        TIMEOUT, "an end within 6 s"
    )  # fmt: skip
    assert {found[name].verdict for name in (*names, AT)} == {"NOT-RUN"}
    said = "it had not ended after 3 s, and had no more: client.create hangs"
    assert found[names[0]].got == f"{said}; --check ID gives it 6 s"
    rest = {found[name].got for name in names[1:]}
    assert rest == {f"{names[0]} had not ended in time; --check ID runs one of them"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, *[signal.SIGKILL] * WHOLE])
def test_a_run_that_is_ended_leaves_no_process(
    made: SickFunctions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setenv("SICK_FILE", str(tmp_path / "hangs"))
    library = str(made.library("Client_Compile", "hang"))
    checks = [f"--check={name}" for name in (BEFORE, AT, AFTER)]
    command = [sys.executable, "-m", "plugrt", "conform", library, "--jobs=2", "--report=r.json"]
    with children.start([*command, *checks], cwd=tmp_path) as process:
        wait_for(tmp_path / "hangs")
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    if number is not signal.SIGKILL:
        assert (process.returncode, "interrupted" in errors) == (128 + number, True)
        rows = json.loads((tmp_path / "r.json").read_text())["checks"]
        [row] = [row for row in rows if row["id"] == AT]
        assert (row["verdict"], row["got"]) == ("NOT-RUN", "the run was interrupted before its end")
