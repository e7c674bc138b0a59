"""The effects of a third-party package's hooks for a user."""

from __future__ import annotations

import json
from pathlib import Path

from support.behaviour import behaviour
from support.distributions import install, run_cli, run_warm
from support.platforms import platform_environment
from support.xla_cpu import library_path, needs_library

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
    done = run_cli(
        "conform", "numpy", "-k", "mychip.", "--report", str(report), folders=(tmp_path,)
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "ids that begin with 'buffers' are those of the kit" in done.stderr
    verdicts = {c["id"]: c["verdict"] for c in json.loads(report.read_text())["checks"]}
    assert (verdicts["mychip.named"], verdicts["mychip.short"]) == ("PASS", "FAIL")
    assert "labels are narrow" in done.stdout


LOWERINGS = """
    import numpy as np
    from plugrt import ffi
    from plugrt.plugins import hookimpl

    def fill(args, results, attributes):
        results[0][...] = args[0] * 1000

    def cosine(context, x):
        [kind] = context.result_types
        return ffi.ffi_call("thousandfold", kind)(x)

    @hookimpl
    def plugrt_lowerings(platform):
        ffi.register_target("thousandfold", fill, platform="cpu")
        return {"stablehlo.cosine": cosine}
"""
PLUGIN = """
    import os
    from plugrt.plugins import LibraryPlugin

    plugin = LibraryPlugin("mychip", os.environ["THE_LIBRARY"])
"""
USE = """
    import numpy as np, plugrt
    from plugrt import array_api as xp

    x = np.float32([1, 2])
    for name in ("mychip", "cpu"):
        try:
            found = plugrt.jit(lambda x: xp.cos(x), backend=name)(x)
            print([round(float(v), 2) for v in found])
        except plugrt.errors.ProgramError as error:
            print(error)
"""


@behaviour(
    24,
    "a package lowers an operation of its plugin's platform to a custom call, and of no other",
    jax="by private names, in `initialize()`",
)
@needs_library
def test_lowerings_of_a_plugin(tmp_path: Path) -> None:
    entries = {
        "plugrt.plugins": {"mychip": "mychip:plugin"},
        "plugrt.lowerings": {"mychip": "mychip_lowerings", "tpu": "never_imported"},
    }
    modules = {"mychip": PLUGIN, "mychip_lowerings": LOWERINGS, "never_imported": "1 / 0"}
    install(tmp_path / "one", "mychip-dist", entries, modules)
    env = {"JAX_PLATFORMS": "mychip,cpu", "THE_LIBRARY": str(library_path())}
    done = run_warm(USE, tmp_path / "one", **env)
    assert done.stdout.splitlines() == ["[1000.0, 2000.0]", "[0.54, -0.42]"], done.stderr
    assert done.stderr == ""
    # A second package lowers the same operation; the others have invalid lowerings.
    other = {"plugrt.lowerings": {"mychip": "other_lowerings"}}
    rest = "".join(line for line in LOWERINGS.splitlines(True) if "register_target" not in line)
    install(tmp_path / "two", "other-dist", other, {"other_lowerings": rest}, version="2.5")
    for name, change in {
        "raises": ("return {", "raise OSError('disk')\n        return {"),
        "unknown": ("stablehlo.cosine", "stablehlo.cosin"),
        "typed": ("return {", "return 3 or {"),
        "listed": (": cosine}", ": 4}"),
    }.items():
        assert change[0] in rest
        entry = {"plugrt.lowerings": {"mychip": f"{name}_lowerings"}}
        wrong = {f"{name}_lowerings": rest.replace(*change)}
        install(tmp_path / "two", f"{name}-dist", entry, wrong)
    done = run_warm(USE, tmp_path / "one", tmp_path / "two", **env)
    conflict, cpu = done.stdout.splitlines()
    assert cpu == "[0.54, -0.42]"
    for fact in ("stablehlo.cosine", "mychip-dist 1.0 and other-dist 2.5", "'mychip'"):
        assert fact in conflict
    said = {line.split("lowerings of ")[1].split("-")[0]: line for line in done.stderr.splitlines()}
    assert "OSError: disk" in said["raises"]
    assert "'stablehlo.cosin': there is no such operation; did you mean" in said["unknown"]
    assert "returned 3; a dict of functions by name is needed" in said["typed"]
    assert "'stablehlo.cosine': 4" in said["listed"]
    done = run_warm(USE, tmp_path / "one", tmp_path / "two", **env,
                      PLUGRT_PLUGINS_BLOCK="other-dist")  # fmt: skip
    assert done.stdout.splitlines()[0] == "[1000.0, 2000.0]"
    (tmp_path / "mine.py").write_text(
        "rules = {'mychip': {'stablehlo.cosine': lambda c, x: x * 4}, 'cpu': {'stablehlo.cosine': "
        "lambda c, x: x * 5}}"
    )
    done = run_warm(USE, tmp_path / "one", tmp_path / "two", tmp_path, **env,
                      PLUGRT_LOWERINGS="mine:rules")  # fmt: skip
    assert done.stdout.splitlines() == ["[4.0, 8.0]", "[5.0, 10.0]"], "what a user states wins"
