"""``plugrt doctor``: explains, survives any plugin, and exits with 1 on failures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plugrt.capi.loading import exception_guard
from plugrt.cli.doctor_checks import examine
from plugrt.plugins import Backends
from support.apart import runs_apart
from support.distributions import install_plugin, run_cli
from support.doctor import show
from support.native_core import needs_core
from support.registries import settings


def doctor(*folders: Path, code: int, **environ: str) -> dict[str, Any]:
    done = run_cli("doctor", "--json", folders=folders, timeout=60, **environ)
    assert done.returncode == code, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["ok"] is (code == 0)
    assert found["elapsed_s"] < 30
    for each in found["candidates"]:
        assert each["reason"] or each["state"] == "initialised", each
    return found


def row(found: dict[str, Any], name: str) -> dict[str, Any]:
    (one,) = [r for r in found["candidates"] if r["name"] == name]
    assert isinstance(one, dict)
    return one


def test_all_well(tmp_path: Path) -> None:
    install_plugin(tmp_path, "a", version="1.5")
    install_plugin(tmp_path, "bomb", "import os; os.abort()")
    found = doctor(tmp_path, code=0, JAX_PLATFORMS="a")
    assert found["chosen"] == ["a"]
    assert found["devices"] == {"a": 1}
    assert found["why"] == "JAX_PLATFORMS=a requests a"
    a, bomb = row(found, "a"), row(found, "bomb")
    assert (a["state"], a["distribution"], a["version"]) == ("initialised", "a-dist", "1.5")
    assert a["elapsed_ms"] > 0
    assert bomb["state"] == "not selected"
    assert bomb["cure"] == "JAX_PLATFORMS=bomb selects it"
    assert found["versions"]["plugrt"]


@pytest.mark.parametrize("core", ["python", pytest.param("c", marks=needs_core)])
def test_without_the_core_it_says_what_is_not_covered(tmp_path: Path, core: str) -> None:
    install_plugin(tmp_path, "a")
    found = doctor(tmp_path, code=0, JAX_PLATFORMS="a", PLUGRT_CORE=core)
    assert found["core"].startswith(f"{core} (PLUGRT_CORE={core})")
    catches = core == "c" and exception_guard.CATCHES
    said = "C++ exceptions of PJRT libraries are not caught, and end the process" in found["core"]
    assert said is not catches


def test_settings_are_shown_with_their_source(tmp_path: Path) -> None:
    install_plugin(tmp_path, "a")
    found = doctor(tmp_path, code=0, JAX_PLATFORMS="a", JAX_DEBUG_NAN="1")
    (setting,) = [s for s in found["settings"] if s["variable"] == "JAX_PLATFORMS"]
    assert (setting["value"], setting["source"]) == ("a", "environment")
    assert "JAX_DEBUG_NAN is not known; did you mean JAX_DEBUG_NANS?" in found["warnings"]


def test_options_for_a_plugin_that_there_is_not_are_a_warning(tmp_path: Path) -> None:
    install_plugin(tmp_path, "chip")
    options = "chip:a:1;chop:a:1"
    found = doctor(tmp_path, code=0, JAX_PLATFORMS="chip", PLUGRT_CLIENT_CREATE_OPTIONS=options)
    assert "PLUGRT_CLIENT_CREATE_OPTIONS names 'chop', which is not a plugin" in found["warnings"]
    assert not any(
        "'chip'" in warning and "not a plugin" in warning for warning in found["warnings"]
    )


def test_a_setting_that_cannot_be_read(tmp_path: Path) -> None:
    found = doctor(tmp_path, code=1, JAX_ENABLE_X64="perhaps")
    assert "JAX_ENABLE_X64='perhaps'" in found["problems"][0]


def test_an_unknown_platform(tmp_path: Path) -> None:
    install_plugin(tmp_path, "a")
    found = doctor(tmp_path, code=1, JAX_PLATFORMS="b")
    assert "requests 'b'" in found["problems"][0]
    assert "problem: JAX_PLATFORMS=b requests 'b'" in show(found)
    assert row(found, "a")["state"] == "not selected"
    assert row(found, "a")["reason"] == "JAX_PLATFORMS=b does not name it"


def test_plugins_after_a_broken_one_are_not_selected(tmp_path: Path) -> None:
    install_plugin(tmp_path, "a", "raise OSError('no driver')")
    install_plugin(tmp_path, "b")
    found = doctor(tmp_path, code=1, JAX_PLATFORMS="a,b")
    assert row(found, "b")["reason"] == "another one, which was requested, does not work"
    assert row(found, "b")["cure"] == "JAX_PLATFORMS=b selects it"


def test_a_selected_plugin_that_raises(tmp_path: Path) -> None:
    install_plugin(tmp_path, "a", "raise OSError('no driver')")
    found = doctor(tmp_path, code=1, JAX_PLATFORMS="a")
    a = row(found, "a")
    assert a["state"] == "broken"
    assert "no driver" in a["reason"]
    assert "OSError: no driver" in a["traceback"]


ENDS = {
    "aborts": ("import os; os.abort()", "was killed by SIGABRT"),
    "exits": ("import os; os._exit(9)", "ended with exit code 9"),
    "leaves": ("import os; os._exit(0)", "ended with exit code 0"),
}


def test_selected_plugins_that_end_the_process(tmp_path: Path) -> None:
    for name, (source, _) in ENDS.items():
        install_plugin(tmp_path, name, source)
    install_plugin(tmp_path, "good")
    found = doctor(tmp_path, code=1, JAX_PLATFORMS=",".join(["good", *ENDS]))
    assert len(found["problems"]) == len(ENDS)
    for (name, (_, fact)), problem in zip(ENDS.items(), found["problems"], strict=True):
        bad = row(found, name)
        assert bad["state"] == "broken"
        assert fact in bad["reason"]
        assert f"while loading {name!r}" in bad["reason"]
        assert f"PLUGRT_PLUGINS_BLOCK={name}" in bad["cure"]
        assert fact in problem
    assert row(found, "good")["state"] == "initialised"


def test_the_others_are_examined_without_the_plugins_that_end_the_process(tmp_path: Path) -> None:
    install_plugin(tmp_path, "aborts", "import os; os.abort()")
    install_plugin(tmp_path, "exits", "import os; os._exit(7)")
    install_plugin(tmp_path, "raises", "raise OSError('no driver')")
    install_plugin(tmp_path, "good")
    found = doctor(tmp_path, code=1, PLUGRT_PLUGINS_ALLOW="aborts,exits,raises,good")
    states = {name: row(found, name)["state"] for name in ("aborts", "exits", "raises", "good")}
    assert states == {
        "aborts": "broken", "exits": "broken", "raises": "broken", "good": "initialised",
    }  # fmt: skip
    assert "SIGABRT" in row(found, "aborts")["reason"]
    assert "exit code 7" in row(found, "exits")["reason"]
    assert "no driver" in row(found, "raises")["reason"]
    assert len(found["problems"]) == 2
    assert found["chosen"] == [], "a program would end, and choose none"


@runs_apart("lifetimes")
def test_a_selected_plugin_that_hangs_is_named_within_the_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = "import os, time; os.write(2, b'No chips detected\\n'); time.sleep(60)"
    install_plugin(tmp_path, "hang", hangs)
    install_plugin(tmp_path, "other")
    tests = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{tests}")
    monkeypatch.setenv("JAX_PLATFORMS", "hang")
    given = settings(JAX_PLATFORMS="hang", PLUGRT_DOCTOR_SECONDS="12")
    found = examine(Backends(given, path=[str(tmp_path)]))
    assert "had not ended after 6 s while loading 'hang'" in found.problems[0]
    assert "its last output: No chips detected" in found.problems[0]
    hang, after = found.candidates
    assert (hang["name"], hang["state"]) == ("hang", "broken")
    assert (after["state"], after["reason"]) == ("not tried", "the process ended before")


def test_a_broken_plugin_that_nobody_asked_for_is_a_warning(tmp_path: Path) -> None:
    install_plugin(tmp_path, "bad", "raise ValueError('v')")
    install_plugin(tmp_path, "good", priority=900)
    found = doctor(tmp_path, code=0, PLUGRT_PLUGINS_ALLOW="bad,good")
    assert found["chosen"] == ["good"]
    assert any("'bad' (bad-dist 1.0)" in w for w in found["warnings"])
    assert row(found, "bad")["state"] == "broken"


def test_bad_items_of_the_environment_are_problems(tmp_path: Path) -> None:
    install_plugin(tmp_path, "a")
    (tmp_path / "x.json").write_text("{")
    found = doctor(
        tmp_path, code=1, JAX_PLATFORMS="a",
        PJRT_NAMES_AND_LIBRARY_PATHS=f"gone:/no/lib.so,oops,sick:{tmp_path}/x.json",
    )  # fmt: skip
    assert len(found["problems"]) == 3
    for fact in ("/no/lib.so", "item 2, 'oops'", "x.json is not JSON"):
        assert any(fact in problem for problem in found["problems"])
    for name in ("gone", "item 2", "sick"):
        assert row(found, name)["state"] == "broken"
    gone = row(found, "gone")
    assert (gone["reason"].count("correct"), gone["cure"]) == (0, "correct the path")
    assert not any("gone" in warning for warning in found["warnings"]), "it is a problem"
    assert found["chosen"] == ["a"]


def test_the_text_shows_candidates_and_choice(tmp_path: Path) -> None:
    install_plugin(tmp_path, "a")
    done = run_cli("doctor", folders=(tmp_path,), JAX_PLATFORMS="a")
    assert done.returncode == 0
    for fact in ("a-dist 1.0", "initialised", "chosen: a (devices: 1)", "all well"):
        assert fact in done.stdout


def test_sentences_have_room_however_narrow_the_terminal(tmp_path: Path) -> None:
    install_plugin(tmp_path, "a")
    install_plugin(tmp_path, "other")
    found = doctor(tmp_path, code=0, JAX_PLATFORMS="a")
    for columns in (50, 80, 140):
        printed = show(found, columns)
        lines = [line for line in printed.splitlines() if "JAX_PLATFORMS=other" in line]
        assert len(lines) == 1, printed
        table = printed[printed.index("Plugins") : printed.index("warning")]
        assert max(map(len, table.splitlines())) <= columns
