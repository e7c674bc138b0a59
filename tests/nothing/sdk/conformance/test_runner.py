"""The runner survives its subjects, and blames the running check."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mutants.killers import AT
from support import kit
from support.apart import runs_apart
from support.distributions import install_plugin

pytestmark = runs_apart("sdk")

BEFORE, AFTER = "buffers.put_get.scalar", "buffers.put_get.transposed"


def run_mutant(name: str, ids: Sequence[str], seconds: float = 30.0) -> dict[str, Any]:
    return kit.run("object", "mutants:mutant", ids, seconds, argument=name).results


def run(kind: str, name: str, ids: Sequence[str], seconds: float = 30.0) -> dict[str, Any]:
    return kit.run(kind, name, ids, seconds).results


@pytest.mark.parametrize(
    ("name", "verdict", "words"),
    [
        ("killer.segfault", "CRASH", "SIGSEGV"),
        ("killer.exit_0", "CRASH", "exit code 0"),
        ("killer.hang", "TIMEOUT", "had not ended"),
    ],
)
def test_crashes_and_hangs_are_verdicts(name: str, verdict: str, words: str) -> None:
    seconds = 4.0 if verdict == "TIMEOUT" else 60.0
    found = run_mutant(name, [BEFORE, AT, AFTER], seconds)
    assert list(found) == [BEFORE, AT, AFTER]
    assert found[BEFORE].verdict is found[AFTER].verdict == "PASS"
    assert (found[AT].verdict, words in found[AT].got) == (verdict, True), found[AT]


def test_a_hang_has_the_last_output_as_a_crash_has() -> None:
    """Earlier, the report had only the time, although the library had written the reason."""
    found = run("object", "support.conformance_mutants:complains_and_hangs", [BEFORE, AT], 4.0)
    assert found[AT].verdict == "TIMEOUT"
    assert found[AT].got == "it had not ended; its last output: No chips detected"


def test_the_kit_s_own_processes_are_not_the_plugin_s() -> None:
    found = kit.run("plugin", "numpy", ["operations.add.float32"])
    assert found.verdicts == ["PASS"]
    assert found.notes == {}, "the reference interpreter was left behind"


def test_a_thread_that_crashes_after_the_last_check_is_a_crash() -> None:
    found = run("object", "support.conformance_mutants:crashes_soon", [BEFORE, AT])
    assert [str(result.verdict) for result in found.values()] == ["PASS", "CRASH"]
    assert "SIGSEGV after the check had ended" in found[AT].got


def test_a_crash_that_an_earlier_check_brought_about_names_it() -> None:
    found = run_mutant("killer.segfault_later", [BEFORE, AT, AFTER])
    assert [str(result.verdict) for result in found.values()] == ["PASS", "CRASH", "PASS"]
    assert found[AT].got.endswith(f"suspect what ran before it in the process, {BEFORE}")


def test_a_client_that_hangs_when_it_starts() -> None:
    found = run_mutant("killer.hang_at_start", ["host.plugin.valid", "client.create", AT], 3.0)
    verdicts = [result.verdict for result in found.values()]
    assert verdicts == ["PASS", "TIMEOUT", "NOT-RUN"]
    assert found[AT].got == "client.create: TIMEOUT"


@pytest.mark.parametrize(
    ("name", "verdict"),
    [("killer.hang_at_import", "TIMEOUT"), ("killer.segfault_at_import", "CRASH")],
)
def test_an_import_that_does_not_end_is_blamed_itself(name: str, verdict: str) -> None:
    seconds = 4.0 if verdict == "TIMEOUT" else 60.0
    found = run_mutant(name, ["host.plugin.valid", "client.create", AT], seconds)
    assert found.pop("host.import").verdict == verdict, "it is named though nobody asked for it"
    assert set(found) == {"host.plugin.valid", "client.create", AT}
    for result in found.values():
        assert (result.verdict, result.got) == ("NOT-RUN", f"host.import: {verdict}")


def test_checks_without_an_import_run_if_the_import_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_plugin(tmp_path, "hangs", "import time\ntime.sleep(600)\n")
    monkeypatch.syspath_prepend(tmp_path)
    installed = ["installed.entry_points", "installed.wheel.version"]
    found = run("plugin", "hangs", ["host.import", *installed, "client.create"], 5.0)
    verdicts = [result.verdict for result in found.values()]
    assert verdicts == ["TIMEOUT", "PASS", "PASS", "NOT-RUN"], found


def test_an_import_that_raises_ends_no_run() -> None:
    found = run_mutant("host.import", ["host.import", "host.plugin.valid", "client.create", AT])
    verdicts = [result.verdict for result in found.values()]
    assert verdicts == ["FAIL", "FAIL", "FAIL", "NOT-RUN"]
    assert "libmutant.so.1" in found["client.create"].got


def test_a_program_is_loaded_by_another_process_than_saved_it() -> None:
    name = "declared.serialization.process"
    names = ["declared.serialization", name]
    sound = run("plugin", "numpy", names, 90.0)
    assert {result.verdict for result in sound.values()} == {"PASS"}
    found = run_mutant(name, names, 90.0)
    assert [found[key].verdict for key in names] == ["PASS", "FAIL"]
    assert "there is no such program" in found[name].got


def test_a_crash_in_the_function_table() -> None:
    found = run_mutant("abi.destroy_null", ["abi.slots", "abi.destroy_null", "abi.errors"])
    verdicts = [result.verdict for result in found.values()]
    assert verdicts == ["PASS", "CRASH", "PASS"]


def test_a_table_without_a_function() -> None:
    checks = kit.select(words="abi.")
    found = run_mutant("killer.all_null", [*checks, "client.create", AT])
    good = {name for name, result in found.items() if result.verdict == "PASS"}
    assert good == {"abi.version", "abi.size", "abi.extensions", "abi.extensions.types"}
    assert found["client.create"].verdict == "FAIL"
    assert found[AT].verdict == "NOT-RUN"
    bad = {name for name, result in found.items() if result.verdict.is_bad}
    assert len(bad) == len(checks) - len(good) + 1, "each has a verdict"


def test_the_end_of_the_process_is_part_of_a_check() -> None:
    found = run_mutant("client.exit", ["client.exit"])
    assert found["client.exit"].verdict == "CRASH"
    assert "exit code 3 after the check had ended" in found["client.exit"].got


def test_jobs_give_the_same_results_in_the_same_order() -> None:
    checks = kit.select(words="buffers.put_get.dtypes")
    found = kit.run("plugin", "numpy", checks, jobs=2)
    assert list(found.results) == checks
    assert sorted(found.heard) == sorted(checks)
    assert {*found.verdicts} == {"PASS"}
    assert found.facts["platform"] == "numpy"
