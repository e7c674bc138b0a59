"""Every check fails on its mutant, a plugin with one defect.

`nox -s sdk` runs the mutants that docs/data/kill_matrix.json does not have, and some of each
chapter; ``nox -s long`` all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import pytest

from mutants import Mutant, modules_of_checks, mutants, mutants_of
from mutants.ahead_of_time import COMPILES
from mutants.installed import SOUND
from mutants.killers import KILLERS
from mutants.liars import CAUGHT_BY, LIARS
from mutants.loans import LENDS
from mutants.tables import SICK, TableFaults
from plugrt_sdk.conformance import Needs
from plugrt_sdk.conformance.mutants.faults import Faults
from support import kit
from support.apart import runs_apart
from support.effort import WHOLE, some_of
from support.markdown import ROOT

pytestmark = runs_apart("sdk")

CHECKS = kit.checks()
OWN_FAULT = re.compile(r"^(TypeError|AttributeError|NameError|KeyError|IndexError|error)\b")
"""A mutant with an error of its own: it is killed, but proves nothing."""

CHANGE_THEIR_PROCESS = {name for name in CHECKS if name.startswith("effects.")}
"""Checks whose mutants change state of this process: they run in a child."""
MEASURE_THEIR_PROCESS = {"endurance.cycles", "endurance.arrays", "endurance.results"}
"""Checks of resident memory: memory that earlier tests free meanwhile would hide a leak."""
ELSEWHERE = {
    *CHANGE_THEIR_PROCESS, *MEASURE_THEIR_PROCESS,
    "abi.destroy_null", "arguments.extension.error_message", "arguments.name.empty",
    "arguments.name.bounded", "arguments.options.bounded", "events.destroy_null", "ownership.leak",
    "endurance.programs",
    "handles.buffers.bounded", "table_programs.bounded", "table_programs.bounded.cut",
    "table_programs.launch.older_options",
}  # fmt: skip
"""Checks whose mutants end the process, or need 400 MB."""
SAMPLE = 4
"""The number of mutants per chapter to repeat that a recorded run has killed."""


def chapters() -> Mapping[str, list[Any]]:
    """Returns the checks that run here: no slow ones, for operations one dtype each, in turn.

    `nox -s kill_matrix` runs all, also those that need a process of their own or 100 MB.
    """
    runs = json.loads((ROOT / "docs/data/kill_matrix.json").read_text())
    recorded = {name for run in runs for name in run["mutants"]}
    found: dict[str, list[Any]] = {}
    variants: dict[str, list[Any]] = {}
    for check in CHECKS.values():
        if check.needs is Needs.PROCESS or check.slow:
            continue
        chapter, _, rest = check.id.partition(".")
        if chapter == "operations":
            variants.setdefault(rest.rpartition(".")[0], []).append(check)
        found.setdefault(chapter, []).append(check)
    found["operations"] = [tried[len(name) % len(tried)] for name, tried in variants.items()]
    if not WHOLE:
        for chapter, checks in found.items():
            known = [check for check in checks if check.id in recorded]
            chosen = {check.id for check in some_of(known, SAMPLE, chapter)}
            found[chapter] = [c for c in checks if c.id in chosen or c.id not in recorded]
    return found


CHAPTERS = chapters()


def try_on(check: str, faults: Mutant) -> Any:
    """Returns the result of a check on a mutant, in this process."""
    [found] = kit.judged(faults.plugin_of, check)
    return found


def test_each_check_has_a_mutant() -> None:
    assert set(mutants()) - {*KILLERS, *LIARS, *SICK} == set(CHECKS)


@pytest.mark.parametrize("module", modules_of_checks())
def test_a_module_of_checks_has_its_mutants_under_its_name(module: str) -> None:
    chapter = import_module(module).CHAPTER
    assert set(mutants_of(module)) == {check.id for check in chapter}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_check_kills_its_mutant(chapter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLUGRT_MUTANT_WAS_HERE", raising=False)
    for check in CHAPTERS[chapter]:
        if check.id in ELSEWHERE:
            continue
        monkeypatch.setenv("PLUGRT_MUTANT_WAS_HERE", "")  # so that what a mutant sets is undone
        found = try_on(check.id, mutants()[check.id])
        assert found.verdict == "FAIL", check.id
        assert not OWN_FAULT.match(found.got), (check.id, found.got)
        assert found.got, check.id


@pytest.mark.parametrize("name", some_of(sorted(CHANGE_THEIR_PROCESS), 2))
def test_mutants_of_the_process_are_caught_in_their_own_process(name: str) -> None:
    found = kit.run("object", "mutants:mutant", sorted(CHANGE_THEIR_PROCESS), argument=name)
    assert {key for key, result in found.results.items() if result.verdict == "FAIL"} == {name}


@pytest.mark.parametrize("name", some_of(sorted(MEASURE_THEIR_PROCESS), 1))
def test_mutants_of_measurements_are_caught_in_their_own_process(name: str) -> None:
    found = kit.run("object", "mutants:mutant", [name], argument=name)
    assert found.verdicts == ["FAIL"]


@pytest.mark.parametrize("name", LIARS)
def test_wrong_declarations_are_caught(name: str) -> None:
    found = try_on(CAUGHT_BY[name], LIARS[name])
    assert found.verdict == "FAIL", found
    assert not OWN_FAULT.match(found.got), found.got


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_sound_plugin_passes(chapter: str) -> None:
    sound: Mapping[bool, Mutant] = {
        False: Faults(devices=4, backend=COMPILES, plugin=SOUND, loaded=LENDS),
        True: TableFaults(lambda table: None, devices=2),
    }
    for has_table, plugin in sound.items():
        checks = [check for check in CHAPTERS[chapter] if check.needs.has_table is has_table]
        results = kit.judged(plugin.plugin_of, *(check.id for check in checks))
        for check, found in zip(checks, results, strict=True):
            assert found.verdict.is_good, (check.id, found)
            assert found.verdict == "PASS" or check.capability or check.refusable, check.id
