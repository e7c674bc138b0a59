"""What a third party's package adds through hooks, as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

from support.behaviour import behaviour
from support.distributions import install, run_cli
from support.platforms import platform_environment

FACTS = """
    from plugrt.plugins import hookimpl

    @hookimpl
    def plugrt_doctor_facts():
        return {"driver": "1.5 <b>", "busy": True, "queues": 4}
"""
CHECKS = """
    from plugrt.plugins import hookimpl
    from plugrt_sdk.conformance import Chapter, Level, Needs, PluginSubject
    from plugrt_sdk.conformance.expect import expect

    CHAPTER = Chapter("mychip", Level.INSTALLS, "the maker's manual", Needs.PLUGIN)

    @CHAPTER.check("named", why="the manual says so")
    def named(subject: PluginSubject) -> None:
        '''The plugin has a name.'''
        expect(subject.plugin.name, "a name", subject.plugin.name)

    @CHAPTER.check("short", why="labels are narrow")
    def short(subject: PluginSubject) -> None:
        '''Its name has one letter.'''
        expect(len(subject.plugin.name) == 1, "one letter", subject.plugin.name)

    @hookimpl
    def plugrt_conformance_checks():
        return [CHAPTER]
"""


@behaviour(
    24,
    "a package adds facts to `plugrt doctor`; one that ends the process costs the facts after its",
    jax="JAX has none",
)
def test_facts_for_doctor(tmp_path: Path) -> None:
    install(tmp_path, "a-dist", {"plugrt.doctor": {"mychip": "my_facts"}}, {"my_facts": FACTS})
    install(tmp_path, "b-dist", {"plugrt.doctor": {"sick": "sick_facts"}},
            {"sick_facts": "import os; os._exit(3)"})  # fmt: skip
    page = tmp_path / "page.html"
    env = platform_environment()
    done = run_cli("doctor", "--json", "--html", str(page), folders=(tmp_path,), **env)
    found = json.loads(done.stdout)
    assert found["ok"], "packages' facts decide nothing"
    assert [list(fact.values()) for fact in found["facts"]] == [
        ["a-dist 1.0", "driver", "1.5 <b>"],
        ["a-dist 1.0", "busy", True],
        ["a-dist 1.0", "queues", 4],
    ]
    (warning,) = [w for w in found["warnings"] if "sick" in w]
    assert "exit code 3 while asking 'sick' (b-dist 1.0) for facts" in warning
    assert "1.5 &lt;b&gt;" in page.read_text()


@behaviour(
    24,
    "a package adds checks to `plugrt conform`, under ids that begin with its own name",
    jax="JAX has none",
)
def test_checks_for_the_kit(tmp_path: Path) -> None:
    entry = {"plugrt.conformance": {"mychip": "my_checks"}}
    install(tmp_path, "c-dist", entry, {"my_checks": CHECKS})
    others = {"plugrt.conformance": {"buffers": "their_checks"}}
    install(tmp_path, "d-dist", others, {"their_checks": CHECKS})
    report = tmp_path / "report.json"
    done = run_cli("conform", "numpy", "-k", "mychip.", "--json", str(report), folders=(tmp_path,))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "ids that begin with 'buffers' are those of the kit" in done.stderr
    verdicts = {c["id"]: c["verdict"] for c in json.loads(report.read_text())["checks"]}
    assert (verdicts["mychip.named"], verdicts["mychip.short"]) == ("PASS", "FAIL")
    assert "labels are narrow" in done.stdout
