"""The choice between the compiled core and Python for calls."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from plugrt import config
from plugrt.errors import ConfigError, SettingInUse
from plugrt.native import native_core
from plugrt.native.native_core import choose_core
from support import children
from support.native_core import needs_core
from support.registries import settings

IMPORTS = """
import sys, _testcapi
from importlib.util import module_from_spec, spec_from_file_location

spec = spec_from_file_location("plugrt._core", sys.argv[1])
for n in range(10_000):
    module = module_from_spec(spec)
    _testcapi.set_nomemory(n, n + 1)  # the n-th allocation fails
    try:
        spec.loader.exec_module(module)
        break
    except (MemoryError, SystemError, RuntimeError):  # as CPython says of types and of locks
        pass
    finally:
        _testcapi.remove_mem_hooks()
# Python drops some of these errors, as where a cache of its own would grow.
print(n > 4, module.Client.__name__)
spec.loader.exec_module(module_from_spec(spec))
"""


def refuse(error: Exception) -> Any:
    """Returns a function that fails to import the extension."""

    def load(name: str) -> Any:
        raise error

    return load


@needs_core
def test_the_core_is_chosen_where_it_is_and_nothing_is_asked_for() -> None:
    module = importlib.import_module("plugrt._core")
    assert choose_core(None) == (module, "the compiled core is installed")
    assert choose_core("c") == (module, "PLUGRT_CORE=c")
    assert choose_core("python") == (None, "PLUGRT_CORE=python")


@pytest.mark.parametrize(
    ("error", "without_gil", "why"),
    [
        (ModuleNotFoundError("plugrt._core"), 0, r"no C compiler\. Install plugrt from"),
        (
            ImportError("GLIBC_2.99 not found"),
            0,
            r"loaded \(GLIBC_2.99 not found\). Install plugrt",
        ),
        (SystemError("no exception"), 0, r"loaded \(SystemError: no exception\). Install plugrt"),
        (ModuleNotFoundError("plugrt._core"), 1, "this Python has no GIL"),
    ],
)
def test_python_is_chosen_where_the_core_is_not(
    monkeypatch: pytest.MonkeyPatch, error: Exception, without_gil: int, why: str
) -> None:
    load = refuse(error)
    monkeypatch.setattr("sysconfig.get_config_var", lambda _: without_gil)
    core, reason = choose_core(None, load)
    assert core is None
    assert re.search(why, reason)
    with pytest.raises(ConfigError, match=f"PLUGRT_CORE=c .*{why}.*unset PLUGRT_CORE"):
        choose_core("c", load)


def test_another_interpreter_is_not_told_to_install_what_it_cannot_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load = refuse(ImportError("plugrt._core serves the main interpreter alone"))
    monkeypatch.setattr(native_core, "is_main_interpreter", lambda: False)
    core, reason = choose_core(None, load)
    assert core is None
    assert (
        reason == "the core works only in the first interpreter of a process, and this is another"
    )


STALE = "built from other sources .* Install plugrt again.*pip install -e runtime"


@pytest.mark.parametrize("known", [{}, {"SOURCES": "array.c 0123456789ab\n"}])
def test_python_is_chosen_where_the_core_is_of_other_sources(known: dict[str, str]) -> None:
    """As after ``git pull`` in an editable installation: it may lack functions that Python uses."""
    stale = types.SimpleNamespace(__file__="/there/_core.abi3.so", **known)
    load = lambda _: [stale]  # noqa: E731
    core, reason = choose_core(None, load)
    assert core is None
    assert re.match(f"/there/_core.abi3.so was {STALE}", reason)
    with pytest.raises(ConfigError, match=f"PLUGRT_CORE=c .*{STALE}.*unset PLUGRT_CORE"):
        choose_core("c", load)
    assert choose_core("python", load) == (None, "PLUGRT_CORE=python")


@pytest.mark.parametrize("asked", [None, "c"])
def test_the_doctor_says_that_the_core_is_of_other_sources(
    tmp_path: Path, asked: str | None
) -> None:
    """Also if the installed core has none of the functions that Python uses."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, types\n"
        "sys.modules['plugrt._core'] = types.SimpleNamespace(__file__='old.so')\n",
        encoding="utf-8",
    )
    environ = {k: v for k, v in os.environ.items() if k != "PLUGRT_CORE"}
    environ |= {"PYTHONPATH": str(tmp_path)} | ({"PLUGRT_CORE": asked} if asked else {})
    command = [sys.executable, "-m", "plugrt", "doctor", "--json"]
    done = children.run(command, timeout=100, env=environ)
    found = json.loads(done.stdout)
    assert found["core"] == "" if asked else found["core"].startswith("python (old.so was built")
    [said] = found["problems"] if asked else [found["core"]]
    assert re.search(f"old.so was {STALE}", said)
    assert (done.returncode, found["ok"]) == ((1, False) if asked else (0, True)), done.stderr


def test_a_value_that_is_neither_names_the_variable() -> None:
    with pytest.raises(ConfigError, match=r"PLUGRT_CORE='rust'.*c \| python"):
        _ = settings(PLUGRT_CORE="rust").core


def test_the_choice_is_made_once() -> None:
    importlib.import_module("plugrt.execution.arrays.array")
    other = "c" if config.core == "python" else "python"
    with pytest.raises(SettingInUse, match="PLUGRT_CORE before the program starts"):
        config.update("core", other)
    config.update("core", config.core)


@needs_core
@pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="a Python that crashes where a type finds no memory"
)
def test_an_import_that_failed_may_be_tried_again() -> None:
    pytest.importorskip("_testcapi")
    file = importlib.import_module("plugrt._core").__file__
    done = children.run([sys.executable, "-c", IMPORTS, file], timeout=100)
    assert done.stdout == "True Client\n", done.stderr
    last = done.stderr.splitlines()[-1]
    assert last == "ImportError: plugrt._core is loaded already, once for a process"
