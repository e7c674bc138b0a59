"""The costs of ``import plugrt``, and the modules that it does not import."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from types import FrameType

import pytest

from plugrt.errors import ConfigError
from support.distributions import run_python
from support.registries import settings

HEAVY = (
    "jaxlib", "jax", "pytest", "_pytest", "pycparser", "cffi", "_cffi_backend", "rich", "click",
    "pluggy", "plugrt_cpu", "plugrt_cuda", "plugrt_numpy", "plugrt_remote", "plugrt_tpu",
    "plugrt_sdk", "libtpu", "jax_plugins",
    "optree", "scipy", "sklearn", "importlib_metadata",
)  # fmt: skip


def imported(statement: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", statement],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return set(re.findall(r"\|\s*\d+ \|\s*(\S+)$", done.stderr, re.MULTILINE))


def test_import_plugrt_imports_nothing_heavy() -> None:
    modules = imported("import plugrt")
    assert "plugrt" in modules
    assert {m.split(".")[0] for m in modules} & set(HEAVY) == set()


def test_listing_names_imports_nothing_heavy() -> None:
    modules = imported("import plugrt; dir(plugrt); plugrt.__version__; plugrt.errors")
    assert {m.split(".")[0] for m in modules} & set(HEAVY) == set()


METADATA = {"importlib_metadata", "importlib.metadata", "email", "zipfile", "csv"}
"""Modules that reading the metadata of distributions with the standard library imports."""


@pytest.mark.parametrize("plugin", ["plugrt_cpu", "plugrt_cuda", "plugrt_tpu"])
def test_importing_a_plugin_imports_next_to_nothing(plugin: str) -> None:
    before = imported("import pathlib, plugrt.plugins.library")
    added = imported(f"import plugrt.plugins.library, {plugin}") - before
    assert f"{plugin}.plugin" in added
    # Counted, not timed: earlier, 76 modules of the standard library and 7 own ones cost 41 ms.
    assert len([m for m in added if m.startswith("plugrt")]) <= 4, added
    assert len([m for m in added if not m.startswith("plugrt")]) <= 2, added


@pytest.mark.parametrize("platforms", ["cpu", ""])
def test_listing_devices_reads_metadata_without_importlib_metadata(platforms: str) -> None:
    modules = imported(
        f"import os; os.environ['JAX_PLATFORMS'] = {platforms!r}\n"
        "os.environ['PLUGRT_PLUGINS_ALLOW'] = 'cpu,cuda,tpu'\n"
        "import plugrt; plugrt.devices()"
    )
    assert "plugrt_cpu.client" in modules
    assert {m for m in modules if m.split(".")[0] in METADATA or m in METADATA} == set()


def test_listing_devices_imports_nothing_of_programs() -> None:
    modules = imported(
        "import os; os.environ |= {'JAX_PLATFORMS': 'cpu', 'PLUGRT_PLUGINS_ALLOW': 'cpu'}\n"
        "import plugrt; plugrt.devices()"
    )
    ours = {m for m in modules if m.split(".")[0] in ("plugrt", "plugrt_cpu")}
    assert len(ours) <= 92, sorted(ours)  # counted, not timed
    late = {"difflib", "hashlib", "importlib.util", "json", "pkgutil", "socket", "traceback",
            "plugrt.interface.program"}  # fmt: skip
    assert modules & {*late, "plugrt_cpu.compiling"} == set()
    assert {m for m in ours if m.startswith("plugrt.capi.")} == set()


def test_each_metadata_folder_is_read_once() -> None:
    done = run_python(
        """
        import collections, os, sys
        import plugrt
        opened, listed = collections.Counter(), collections.Counter()

        def note(event, arguments):
            if event == "open" and str(arguments[0]).endswith("entry_points.txt"):
                opened[arguments[0]] += 1
            if event == "os.listdir" and str(arguments[0]).endswith((".dist-info", ".egg-info")):
                listed[arguments[0]] += 1

        sys.addaudithook(note)
        plugrt.devices()
        print(len(opened), max(opened.values()), len(listed))
        """,
        JAX_PLATFORMS="cpu",
    )
    count, most, listed = map(int, done.stdout.split())
    assert count > 3, done.stderr
    assert (most, listed) == (1, 0)


def test_settings_that_are_not_set_are_not_parsed() -> None:
    calls = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls.append(frame.f_code.co_name)

    for environ, most in (({}, 12), ({"JAX_ENABLE_X64": "1", "PLUGRT_PROBE_SECONDS": "3"}, 24)):
        made = settings(**environ)
        sys.setprofile(note)
        made.check()
        sys.setprofile(None)
        assert len(calls) <= most, calls
        calls.clear()
    with pytest.raises(ConfigError, match="JAX_ENABLE_X64"):
        settings(JAX_ENABLE_X64="perhaps").check()


def test_no_native_library_is_mapped() -> None:
    done = run_python(
        """
        import plugrt
        import numpy, ml_dtypes
        maps = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
        ours = [m for m in maps if any(w in m for w in ("jaxlib", "pjrt", "libtpu", "xla"))]
        print(ours)
        """
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_stablehlo_is_compiled_without_importing_jaxlib() -> None:
    modules = imported("import plugrt; plugrt.compile, plugrt.load_program, plugrt.topology")
    assert "plugrt.programs.executables" in modules
    assert {m for m in modules if m.split(".")[0] in ("jax", "jaxlib")} == set()


def test_discovery_and_listing_devices_need_no_mlir() -> None:
    modules = imported("import plugrt; plugrt.devices('cpu')")
    assert "plugrt_cpu.client" in modules
    assert not {m for m in modules if m.startswith("jaxlib.mlir.dialects")}
    assert not {m for m in modules if m.split(".")[0] in ("jax", "pytest", "rich", "click")}


def test_all_public_names_are_there() -> None:
    done = run_python(
        """
        import plugrt
        missing = []
        for module in (plugrt, plugrt.plugins):
            for name in module.__all__:
                try:
                    getattr(module, name)
                except Exception as error:
                    missing.append((name, repr(error)))
        print(missing)
        listed = {name for name in dir(plugrt) if not name.startswith("__")}
        print(sorted(listed ^ ({*plugrt.__all__} - {"__version__"})))
        try:
            plugrt.nosuch
        except AttributeError as error:
            print(error)
        """,
        JAX_PLATFORMS="cpu",
    )
    assert done.stdout.splitlines() == [
        "[]", "[]", "module 'plugrt' has no attribute 'nosuch'",
    ], done.stderr  # fmt: skip


@pytest.mark.parametrize(
    "first",
    ["", "import plugrt.settings.declarations;", "import plugrt.plugins.selection.backends;"],
)
def test_config_is_the_settings_however_it_was_imported(first: str) -> None:
    done = run_python(f"{first} import plugrt; plugrt.devices; print(plugrt.config.disable_jit)")
    assert done.stdout.strip() == "False", done.stderr


@pytest.mark.parametrize("first", ["devices", "jit", "array_api"])
def test_libraries_do_not_chatter(first: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c",
         f"import numpy, plugrt; plugrt.{first}; plugrt.jit(lambda x: x + 1)(numpy.ones(2))"],
        capture_output=True, text=True, timeout=60, check=True,
        env={k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
        | {"JAX_PLATFORMS": "cpu"},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("", "")
