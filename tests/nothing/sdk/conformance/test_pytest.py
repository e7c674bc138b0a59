"""The kit inside an author's own pytest: `PluginSuite`, and ``pytest --plugrt NAME``."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support import children
from support.apart import runs_apart
from support.markdown import ROOT

pytestmark = runs_apart("sdk")

pytest_plugins = "pytester"

PLUGINS = """
from plugrt.plugins import Availability
from plugrt_sdk import BackendPlugin
from mutants import mutant
from plugrt_numpy.backend import NumpyBackend


def crashing():
    return mutant("killer.segfault")


def dead():
    return mutant("killer.segfault_at_start")


def failing():
    return mutant("buffers.put_get.scalar")


def counted():
    with open("processes", "a") as file:
        file.write("one\\n")
    return BackendPlugin("counted", NumpyBackend)


class Absent(BackendPlugin):
    def probe(self):
        return Availability.no("no chip in this machine")


absent = Absent("absent", NumpyBackend)
"""
SUITES = """
from plugrt_sdk.conformance import PluginSuite


class Absent(PluginSuite):
    plugin = "author_plugins:absent"


class Crashing(PluginSuite):
    plugin = "author_plugins:crashing"


class Dead(PluginSuite):
    plugin = "author_plugins:dead"
    words = "put_get.one"


class Failing(PluginSuite):
    plugin = "author_plugins:failing"
    waivers = "known.toml"
"""
WAIVER = """[[waiver]]
id = "{}"
kind = "planned"
reason = "scalars are padded"
url = "https://example.org/1"
until = 2999-01-01
"""
START, SCALAR, ONE = "client.create", "buffers.put_get.scalar", "buffers.put_get.one"


@pytest.fixture
def author(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """An author's folder, whose ini does not mention the kit and names its classes Test*."""
    monkeypatch.setenv("PYTHONPATH", children.path_with(ROOT / "tests"))
    pytester.makeini(
        "[pytest]\naddopts = --strict-markers --strict-config -W error -p no:randomly\n"
        "python_functions = spec_*"
    )
    pytester.makepyfile(author_plugins=PLUGINS)
    return pytester


def outcomes(result: pytest.RunResult, name: str) -> dict[str, str]:
    """Returns the outcome of each test of a class, from the lines of ``pytest -v``."""
    started = f"test_mine.py::{name}::test_check["
    found = [line.split()[:2] for line in result.outlines if line.startswith(started)]
    return {test.partition("[")[2].rstrip("]"): outcome for test, outcome in found}


def test_verdicts_are_outcomes(author: pytest.Pytester) -> None:
    author.makepyfile(test_mine=SUITES)
    author.makefile(".toml", known=WAIVER.format(SCALAR) + WAIVER.format(ONE))
    chosen = " or ".join((START, SCALAR, ONE))
    result = author.runpytest_subprocess("-v", "-k", chosen)
    assert outcomes(result, "Crashing") == {START: "PASSED", SCALAR: "PASSED", ONE: "FAILED"}
    assert outcomes(result, "Absent") == dict.fromkeys((START, SCALAR, ONE), "SKIPPED")
    assert outcomes(result, "Dead") == {ONE: "FAILED"}, "no test says that the client cannot start"
    # Waivers are strict: one is needed, the other is stale.
    assert outcomes(result, "Failing") == {START: "PASSED", SCALAR: "XFAIL", ONE: "FAILED"}
    result.assert_outcomes(passed=3, failed=3, xfailed=1, skipped=3, deselected=len(_ids()) * 3 - 9)
    result.stdout.fnmatch_lines_random([
        f"CRASH {START}", f"CRASH {ONE}", "  got: * SIGSEGV*",
        f"  run: * plugrt conform author_plugins:crashing --check={ONE}",
        "[[]XPASS(strict)[]] WAIVED until 2999-01-01: scalars are padded (https://example.org/1)",
    ])  # fmt: skip


def test_a_quick_class_has_one_test_for_all_dtypes(author: pytest.Pytester) -> None:
    suite = "from plugrt_sdk.conformance import PluginSuite\nclass Quick(PluginSuite):\n"
    author.makepyfile(test_mine=f"{suite}    plugin, quick, words = 'numpy', True, 'buffers.views'")
    result = author.runpytest_subprocess("--collect-only", "-q", "-k", "views.float or views.byte")
    assert {line for line in result.outlines if "::" in line} == {
        f"test_mine.py::Quick::test_check[buffers.views.{name}]"
        for name in ("float32", "byte_order.float32")
    }


def _ids() -> list[str]:
    from support import kit

    return list(kit.checks())


def test_the_option_runs_the_checks_once_for_all_workers(author: pytest.Pytester) -> None:
    author.syspathinsert()
    result = author.runpytest_subprocess(
        "-n2", "--plugrt", "author_plugins:counted", "-k", f"{START} or {ONE}"
    )
    result.assert_outcomes(passed=2)
    processes = (author.path / "processes").read_text().split()
    assert processes == ["one", "one"], "one started the client, one ran the other check"


def test_the_option_makes_a_client_and_a_device(author: pytest.Pytester) -> None:
    file = author.makepyfile("def spec_mine(client, device): assert device is client.devices()[0]")
    result = author.runpytest_subprocess("--plugrt", "numpy", file)
    result.assert_outcomes(passed=1)
    author.syspathinsert()
    absent = author.runpytest_subprocess("-rs", "--plugrt", "author_plugins:absent", file)
    absent.assert_outcomes(skipped=1)
    absent.stdout.fnmatch_lines(["SKIPPED*NO-HARDWARE: *no chip in this machine*"])


def test_a_plugin_that_does_not_exist_is_one_error(author: pytest.Pytester) -> None:
    file = author.makepyfile("""
        from plugrt_sdk.conformance import PluginSuite
        class Misspelt(PluginSuite):
            plugin = "nunpy"
        class NoFile(PluginSuite):
            plugin = "./no.so"
        class NoModule(PluginSuite):
            plugin = "nowhere.plugin:plugin"
        class Nothing(PluginSuite):
            pass
    """)
    result = author.runpytest_subprocess(file)
    result.assert_outcomes(errors=4)
    result.stdout.fnmatch_lines([
        "Misspelt: Misspelt.plugin requests *did you mean 'numpy'*", "NoFile: *does not exist*",
        "NoModule: *there is no module 'nowhere'*", "Nothing *set plugin = *",
    ])  # fmt: skip
    for name, said in (
        ("nunpy", "pytest requests 'nunpy', *did you mean 'numpy'*"),
        ("./no.so", "*./no.so does not exist*"),
        ("nowhere.plugin:plugin", "*there is no module 'nowhere'*"),
    ):
        refused = author.runpytest_subprocess("--plugrt", name)
        assert refused.ret == pytest.ExitCode.USAGE_ERROR
        refused.stderr.fnmatch_lines([f"ERROR: --plugrt: {said}"])
        assert "plugrt conform" not in refused.stderr.str()


def test_without_the_option_pytest_imports_nothing_of_it() -> None:
    code = "import sys, plugrt_sdk.pytest_plugin; print(*(m for m in sys.modules if 'plugrt' in m))"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    editable = {name for name in found if name.startswith("__editable__")}
    assert set(found) - editable == {
        "plugrt_sdk", "plugrt_sdk.lazy_names", "plugrt_sdk.pytest_plugin",
    }  # fmt: skip
