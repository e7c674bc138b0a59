"""`plugrt conform`: exit codes, selections, waivers, and reports."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click
import pytest
from click.testing import Result

from plugrt.base import files
from plugrt_sdk.conformance.manifest import manifest_hash
from plugrt_sdk.conformance.provenance import describe_command
from plugrt_sdk.conformance.reports.difference import difference
from plugrt_sdk.conformance.reports.junit import junit
from plugrt_sdk.conformance.reports.markdown import markdown
from plugrt_sdk.conformance.reports.readme import BEGIN, END, Slot
from plugrt_sdk.conformance.reports.report import describe_check, reproduce
from plugrt_sdk.conformance.reports.scorecard import scorecard
from plugrt_sdk.conformance.reports.terminal import report_lines
from plugrt_sdk.conformance.target import Target
from plugrt_sdk.conformance.verdict import Result as Outcome
from plugrt_sdk.conformance.verdict import Verdict
from plugrt_sdk.export import export_library
from support import kit
from support.apart import runs_apart
from support.kit import checks
from support.watched_calls import at_calls

pytestmark = runs_apart("sdk")

MUTANT = "support.conformance_mutants:no_zero_d"
KILLED = "buffers.put_get.scalar"
HELD = "buffers.put_get.one"
WAIVER = """[[waiver]]
id = "{id}"
kind = "plugin-bug"
reason = "scalars are padded"
url = "https://example.org/1"
until = {until}
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))


def conform(*arguments: str) -> Result:
    return kit.conform(*arguments)


def exit_code(result: Result) -> int:
    """Returns the exit code of ``plugrt``."""
    if result.exception is not None:
        return int(getattr(result.exception, "exit_code", -1))
    return int(result.return_value)


@pytest.mark.parametrize("seconds", ["nan", "inf", "0"])
def test_a_time_limit_is_one(seconds: str) -> None:
    found = conform("numpy", "--list", "--time-limit", seconds)
    assert exit_code(found) == 2
    assert isinstance(found.exception, click.BadParameter)
    assert found.exception.param is not None
    assert found.exception.param.name == "seconds"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Returns the report of a run with two checks, one of which fails."""
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
        found = conform(MUTANT, "--check", KILLED, "--check", HELD, "--report", "r.json",
                        "--html", "r.html", "--badge", "r.svg")  # fmt: skip
    assert exit_code(found) == 1, found.output
    assert (folder / "r.html").read_text().startswith("<!doctype html>")
    assert (folder / "r.svg").read_text().startswith("<svg")
    made: dict[str, Any] = json.loads((folder / "r.json").read_text())
    for i, row in enumerate(made["checks"]):  # the file omits defaults and constant facts
        stated = describe_check(kit.find(row["id"]))
        empty = {**Outcome(Verdict.PASS).as_dict(), "reproduce": "", "waiver": None}
        made["checks"][i] = empty | stated | row
    return made


@pytest.mark.parametrize(
    ("badge", "page", "first"),
    [
        (None, None, "**no level**"),
        ("b.svg", None, "![PJRT conformance: no level](../b.svg)"),
        ("b.svg", "docs/c.html", "[![PJRT conformance: no level](../b.svg)](c.html)"),
    ],
)
def test_filling_a_readme_changes_only_the_marked_lines(
    report: dict[str, Any], badge: str | None, page: str | None, first: str, tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    file = tmp_path / "docs" / "README.md"
    file.write_text(f"# Mine\n{BEGIN}\nNot measured yet.\n{END}\nThe end \\1.\n")
    for _ in range(2):
        file.write_text(Slot(file).fill(report, badge and Path(badge), page and Path(page)))
        before, _, rest = file.read_text().partition(f"{BEGIN}\n")
        inside, _, after = rest.partition(f"\n{END}")
        assert (before, after) == ("# Mine\n", "\nThe end \\1.\n")
        assert inside.splitlines()[0] == first
        assert "| 1 Buffers | 1 | 1 |" in inside
        assert f"What does not hold: `{KILLED}` (FAIL)." in inside


@pytest.mark.parametrize("text", ["", BEGIN, f"{END}\n{BEGIN}", f"{BEGIN}{BEGIN}{END}", None])
def test_a_readme_without_a_slot_is_refused_before_the_run(text: str | None) -> None:
    if text is not None:
        Path("README.md").write_text(text)
    found = conform(MUTANT, "--check", HELD, "--readme", "README.md", "--report", "r.json")
    assert exit_code(found) == 2
    assert "README.md" in str(found.exception)
    assert not Path("r.json").exists()


@pytest.mark.parametrize("option", ["--report", "--junit", "--markdown", "--html", "--badge"])
def test_a_report_that_cannot_be_written_is_refused_before_the_run(option: str) -> None:
    found = conform(MUTANT, "--check", HELD, option, "no_such_folder/report")
    assert exit_code(found) == 2
    assert getattr(found.exception, "param_hint", "") == option
    assert "no_such_folder/report cannot be written" in str(found.exception)


@pytest.mark.parametrize("option", [("--json",), ("--report", "-"), ("--markdown", "-")])
def test_a_report_on_stdout_is_alone_there(option: tuple[str, ...]) -> None:
    found = conform("numpy", "--check", HELD, "--profile", "aot", *option)
    markdown = option[0] == "--markdown"
    assert found.stdout.startswith("# Conf" if markdown else '{\n  "format": 2')
    assert found.stdout.endswith("\n" if markdown else "}\n")
    assert "No level. " in found.stderr
    assert "profile aot: " in found.stderr
    assert not Path("-").exists()


def test_a_profile_of_which_much_is_lacking_is_told_in_a_line() -> None:
    found = conform(
        "numpy", "--check", HELD, "--profile", "jax", "--level", "1", "-k", "put_get.one"
    )
    assert exit_code(found) == 1
    [line] = [line for line in found.stdout.splitlines() if line.startswith("profile jax: lacks ")]
    assert re.fullmatch(
        r".*: lacks [\w.]+(, [\w.]+){7} and \d+ more that the JSON report names", line
    )


def test_two_reports_on_stdout_are_refused() -> None:
    found = conform("numpy", "--check", HELD, "--json", "--html", "-")
    assert exit_code(found) == 2
    assert "one report can go to stdout" in str(found.exception)


def test_a_report_for_which_the_disk_has_no_room() -> None:
    """The other reports are written, and the old file is unchanged."""
    Path("full.json").write_text("old")

    def fill_up(inputs: Mapping[str, Any], _: object) -> None:
        if (path := inputs["path"]).name == "full.json":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    with at_calls([files.write], fill_up):
        found = conform("numpy", "--check", HELD, "--report", "full.json", "--junit", "r.xml",
                        "--markdown", "/dev/full")  # fmt: skip
    assert exit_code(found) == 2
    assert "error: --report: full.json cannot be written: No space left on device" in found.stderr
    assert "error: --markdown: /dev/full cannot be written: No space left" in found.stderr
    assert "1 PASS" in found.stdout
    assert Path("full.json").read_text() == "old"
    assert ElementTree.parse("r.xml").getroot().tag == "testsuites"


def test_a_report_keeps_the_permissions_of_its_file() -> None:
    Path("old.json").touch(0o640)
    conform("numpy", "--check", HELD, "--report", "old.json", "--markdown", "new.md")
    assert Path("old.json").read_text().startswith("{")
    assert Path("old.json").stat().st_mode & 0o777 == 0o640
    Path("touched").touch()
    assert Path("new.md").stat().st_mode == Path("touched").stat().st_mode


def test_a_report_says_what_was_tested(report: dict[str, Any]) -> None:
    rows = {row["id"]: row for row in report["checks"]}
    assert (rows[KILLED]["verdict"], rows[HELD]["verdict"]) == ("FAIL", "PASS")
    assert rows["programs.add"]["verdict"] == "NOT-RUN"
    assert rows[KILLED]["reproduce"] == f"plugrt conform {MUTANT} --check={KILLED}"
    assert "4.5" in rows[KILLED]["got"]
    assert report["counts"]["FAIL"] == report["counts"]["PASS"] == 1
    assert report["level"] is None, "level 0 was not run"
    assert re.fullmatch("[0-9a-f]{64}", report["kit"]["manifest_sha256"])
    assert report["client"]["platform"] == "numpy"
    assert report["machine"]["python"]


@pytest.mark.parametrize("width", [60, 80])
def test_a_report_fits_the_terminal(report: dict[str, Any], width: int) -> None:
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in report_lines(report, width)]
    wide = [line for line in lines if len(line) > width]
    assert all(len(max(line.split(), key=len)) > width - 13 for line in wide), wide
    text = "\n".join(lines)
    assert f"FAIL {KILLED}" in text
    for label in ("expected:", "got:", "why:", "rests on:", "run:"):
        assert f"  {label}" in text


def test_junit_and_markdown(report: dict[str, Any]) -> None:
    suite = ElementTree.fromstring(junit(report)).find("testsuite")
    assert suite is not None
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")
    [failure] = suite.iter("failure")
    assert "expected: " in str(failure.text)
    text = markdown(report)
    assert f"## FAIL: `{KILLED}`" in text
    assert f"plugrt conform {MUTANT} --check={KILLED}" in text


def test_a_report_of_a_library_has_its_whole_provenance() -> None:
    library = export_library("numpy", Path("libnumpy.so").resolve())
    chosen = ["--check", "client.create", "--check", "abi.version", "--option", "num_devices=2"]
    found = conform("./libnumpy.so", *chosen, "--seed", "7", "--report", "r.json")
    assert exit_code(found) == 0, found.output
    report = json.loads(Path("r.json").read_text())
    plugin, kit = report["plugin"], report["kit"]
    assert plugin["library_sha256"] == hashlib.sha256(library.read_bytes()).hexdigest()
    assert re.fullmatch(r"0\.\d+", plugin["api_version"])
    assert (plugin["library"], plugin["options"]) == (str(library), {"num_devices": 2})
    assert (kit["version"], kit["checks"]) == (version("plugrt-sdk"), len(checks()))
    assert kit["manifest_sha256"] == manifest_hash()
    assert {"system", "machine", "python", "plugrt", "jaxlib", "numpy"} <= report["machine"].keys()
    assert [device["kind"] for device in report["client"]["devices"]] == ["NumPy", "NumPy"]
    assert report["settings"]["seed"] == 7
    assert report["run"]["command"].split()[0] == "plugrt"
    assert datetime.fromisoformat(report["run"]["started"]).tzinfo
    other = json.loads(json.dumps(report))
    other["plugin"]["library_sha256"] = "another"
    assert difference(report, other) == [
        f"plugin.library_sha256: {plugin['library_sha256']} -> another"
    ]
    text = markdown(report)
    for said in (plugin["library_sha256"], kit["manifest_sha256"], "seed: 7", "device: 1: NumPy"):
        assert said in text


def test_a_report_has_the_state_of_the_checkout() -> None:
    git = partial(subprocess.run, check=True, capture_output=True, text=True)
    git(["git", "init", "-q"])
    Path("a").write_text("a")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    git(["git", "add", "a"])
    git(["git", *who, "commit", "-qm", "a"])
    commit = git(["git", "rev-parse", "HEAD"]).stdout.strip()
    assert describe_command(["conform"])["git"] == {"commit": commit, "dirty": False}
    Path("a").write_text("b")
    assert describe_command(["conform"])["git"] == {"commit": commit, "dirty": True}


def test_a_waiver_forgives_until_it_is_stale() -> None:
    Path("conformance-waivers.toml").write_text(WAIVER.format(id=KILLED, until="2999-01-01"))
    waived = conform(MUTANT, "--check", KILLED)
    assert (exit_code(waived), "WAIVED" in waived.output) == (0, True)
    assert "https://example.org/1" in waived.output
    Path("conformance-waivers.toml").write_text(WAIVER.format(id=HELD, until="2999-01-01"))
    stale = conform(MUTANT, "--check", HELD)
    assert exit_code(stale) == 2
    assert f"stale waiver: {HELD}" in stale.output + stale.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (WAIVER.format(id=KILLED, until="2020-01-01"), "ended on 2020-01-01"),
        (
            WAIVER.format(id="no.such.check", until="2999-01-01"),
            "w.toml: there is no check no.such.check",
        ),
        (WAIVER.format(id=KILLED, until="2999-01-01").replace("https", "see"), "url is where"),
        (WAIVER.format(id=KILLED, until="2999-01-01").replace('"plugin-bug"', '"x"'), "kind is"),
        (WAIVER.format(id=KILLED, until="2999-01-01") * 2, "waived twice"),
        ('[[waiver]]\nid = "a"', "has the fields"),
        ("waiver = 3", "w.toml: waivers are tables [[waiver]]; found 3"),
        ('[waiver]\nid = "a"', "waivers are tables [[waiver]]; found {'id': 'a'}"),
        ("waiver = [3]", "has the fields"),
        ("tolerances = 3", "tolerances are a table [tolerances]; found 3"),
        ("[waivers]", "no table 'waivers'"),
        ("[tolerances]\nfloat32 = 1000", "0 to 64 ulp"),
        ("[tolerances]\nint32 = 1", "'int32' is none of"),
        ("]", "cannot be read"),
    ],
)
def test_a_file_of_waivers_that_is_not_as_it_must_be(content: str, words: str) -> None:
    Path("w.toml").write_text(content)
    found = conform("numpy", "--waivers", "w.toml")
    assert exit_code(found) == 2
    assert words in str(found.exception.format_message()), found.exception  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "NAME is missing"),
        (("numpy", "--check", "buffers.put_get.scalars"), "did you mean buffers.put_get.scalar"),
        (("numpy", "-k", "nosuchword"), "holds no check"),
        (("numpyy",), "numpyy"),
        (("./nowhere.so",), "nowhere.so"),
        (("nowhere.plugin:plugin",), "there is no module 'nowhere'"),
        (("numpy", "--option", "x"), "KEY=VALUE"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], words: str) -> None:
    found = conform(*arguments)
    assert exit_code(found) == 2, found.output
    assert words in str(found.exception.format_message())  # type: ignore[union-attr]


def test_a_plugin_of_virtual_devices_is_run_on_several() -> None:
    found = conform("numpy", "--check", "scales.replicas", "--report", "r.json")
    report = json.loads(Path("r.json").read_text())
    assert (exit_code(found), report["counts"]["PASS"]) == (0, 1)
    assert (report["plugin"]["options"], len(report["client"]["devices"])) == (
        {"num_devices": 4}, 4
    )  # fmt: skip
    conform(
        "numpy", "--check", "scales.replicas", "--option", "num_devices=1", "--report", "r.json"
    )
    report = json.loads(Path("r.json").read_text())
    assert (report["counts"]["REFUSED"], report["plugin"]["options"]) == (1, {"num_devices": 1})


def test_a_mistake_under_another_code_is_a_warning() -> None:
    check = "programs.refused.nonsense"
    arguments = ("support.conformance_mutants:says_unknown", "--report", "r.json", "--check")
    found = conform(*arguments, check)
    [row] = [r for r in json.loads(Path("r.json").read_text())["checks"] if r["id"] == check]
    assert (exit_code(found), row["verdict"]) == (0, "PASS")
    assert "raised Unknown, not InvalidArgument" in row["got"]
    assert found.stdout.count("note: warning: mistakes of the caller") == 1
    conform(*arguments, check, "--check=client.platform", "--resume", "r.json")
    assert len(json.loads(Path("r.json").read_text())["notes"]) == 1


def test_a_run_of_nothing_is_no_success() -> None:
    found = conform("numpy", "--check", "abi.version")
    assert exit_code(found) == 2
    assert "no check could be run here" in found.stderr


def test_a_boolean_option_is_repeated_as_it_is_read() -> None:
    target = Target("plugin", "numpy", {"fast": True, "devices": 2})
    line = reproduce(target, HELD, seed=0)
    assert line == f"plugrt conform numpy --check={HELD} --option=fast=true --option=devices=2"


def test_a_run_in_which_no_client_starts_is_bad_whatever_is_selected() -> None:
    found = conform("support.conformance_mutants:dead", "--check", HELD)
    assert exit_code(found) == 1
    assert "CRASH client.create" in found.output


def test_each_report_states_the_tolerances_that_were_declared(report: dict[str, Any]) -> None:
    said, changed = "float32 32 ulp, float16 2 ulp", json.loads(json.dumps(report))
    changed["settings"]["tolerances_ulp"] = {"float32": 32, "float16": 2}
    for shown in (markdown, scorecard, junit, lambda found: "\n".join(report_lines(found, 80))):
        assert said not in shown(report)
        assert said in shown(changed)


def test_the_list_is_of_what_is_selected() -> None:
    found = conform("--list", "--level", "0")
    assert exit_code(found) == 0
    assert "host.probe.time  [0]  The fastest of five probes needs" in found.output
    assert "programs" not in found.output


def test_a_quick_run_is_of_one_dtype_and_of_no_profile() -> None:
    found = conform("--list", "--quick", "-k", "operations.add.", "--level", "2")
    assert [line.split()[0] for line in found.output.splitlines()] == [
        "operations.add.float32", "operations.add.special.float32",
        "operations.add.wrapped.int32", "operations.add.large.float32",
    ]  # fmt: skip
    refused = conform("numpy", "--quick", "--profile", "jax")
    assert exit_code(refused) == 2
    assert "--quick leaves out checks that a profile needs" in str(refused.exception)


def listed(*arguments: str) -> list[str]:
    return [row["id"] for row in json.loads(conform("--list", "--json", *arguments).output)]


def test_shards_have_each_selected_check_once() -> None:
    whole = listed("-k", "buffers")
    parts = [listed("-k", "buffers", "--shard", f"{i}/4") for i in (1, 2, 3, 4)]
    assert sorted(name for part in parts for name in part) == sorted(whole)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def stored(name: str) -> dict[str, str]:
    """Returns the verdicts in a stored report, for the checks that ran."""
    rows = json.loads(Path(name).read_text())["checks"]
    return {row["id"]: row["verdict"] for row in rows if row["verdict"] != "NOT-RUN"}


def test_a_run_goes_on_from_reports_and_runs_what_they_lack() -> None:
    both = ("--check", KILLED, "--check", HELD)
    assert exit_code(conform(MUTANT, *both, "--shard", "1/2", "--report", "1.json")) in (0, 1)
    assert len(stored("1.json")) == 1
    assert exit_code(conform(MUTANT, *both, "--resume", "1.json", "--report", "2.json")) == 1
    assert stored("2.json") == {KILLED: "FAIL", HELD: "PASS"}
    report = json.loads(Path("2.json").read_text())
    for row in report["checks"]:
        if row["id"] == KILLED:
            row.update(verdict="WAIVED", was="CRASH", got="as stored")
    Path("2.json").write_text(json.dumps(report))
    found = conform(MUTANT, *both, "--resume", "2.json", "--report", "3.json")
    assert (exit_code(found), stored("3.json")) == (1, {KILLED: "CRASH", HELD: "PASS"})
    assert "as stored" in found.output
    found = conform(MUTANT, "--rerun-failed", "3.json", "--report", "4.json")
    assert (exit_code(found), stored("4.json")) == (1, {KILLED: "FAIL"})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--resume", "r.json", "--seed", "1"), "its seed is 0, now it is 1"),
        (("--resume", "r.json", "--option", "a=1"), "its options is {}, now it is {'a': 1}"),
        (("--resume", "r.json", "--topology", "t"), "its topology is '', now it is 't'"),
        (("--resume", "old.json"), "the kit has other checks now"),
        (("--resume", "w.toml"), "w.toml is no report"),
        (("--rerun-failed", "held.json"), "no check failed in held.json"),
        (("--rerun-failed", "r.json", "--check", HELD), "--rerun-failed names its checks"),
        (("--shard", "3/2"), "'3/2' is not I/N"),
        (("--check", HELD, "--shard", "2/2"), "--shard 2/2: the selection has 1 checks"),
        (("--repeat", "0"), "0 is not in the range"),
    ],
)
def test_a_run_that_does_not_go_on_is_refused(
    report: dict[str, Any], arguments: tuple[str, ...], words: str
) -> None:
    held = [row for row in report["checks"] if row["id"] == HELD]
    Path("r.json").write_text(json.dumps(report))
    Path("held.json").write_text(json.dumps({**report, "checks": held}))
    Path("old.json").write_text(json.dumps({**report, "kit": {"manifest_sha256": "0"}}))
    Path("w.toml").write_text("")
    found = conform(MUTANT, *arguments)
    assert exit_code(found) == 2, found.output
    assert words in str(found.exception.format_message())  # type: ignore[union-attr]


def test_a_fault_of_one_round_is_in_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILED", str(tmp_path / "failed"))
    plugin = "support.conformance_mutants:fails_once"
    found = conform(plugin, "--check", HELD, "--repeat", "3")
    assert exit_code(found) == 1, found.output
    assert "of 3 rounds 1 FAIL, 2 PASS: " in " ".join(found.output.split())
    assert exit_code(conform(plugin, "--check", HELD, "--repeat", "2")) == 0
