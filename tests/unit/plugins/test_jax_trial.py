"""The code of a plugin made for JAX runs in a child first, and in this process only if needed."""

from __future__ import annotations

import importlib
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugrt.errors import PluginBroken, PluginError
from plugrt.plugins import LibraryPlugin
from plugrt.plugins.library import ALONE
from plugrt.plugins.starting import jax_trial
from plugrt.plugins.starting.loading import load
from support.clib import compile_c, needs_cc, tiny_library
from support.distributions import install_plugin, run_cli, run_python
from support.made_for_jax import REGISTERS, made_for_jax
from support.markdown import ROOT
from support.registries import registry, settings
from support.requirements import needs_jax

PLAIN = [  # (the code of initialize(), the options)
    ('xb.register_plugin("chip", library_path="lib.so")', None),
    ('xb.register_plugin("chip", priority=512, library_path="lib.so", options=None)', None),
    ('import pathlib; xb.register_plugin("chip", 3, pathlib.Path("lib.so"), {"a": 1})', {"a": 1}),
    (
        'xb.register_plugin("chip", library_path="lib.so", options={"a": "x", "b": [1, 2], '
        '"c": 1.5, "d": True})',
        {"a": "x", "b": [1, 2], "c": 1.5, "d": True},
    ),
    ('import colorsys, ctypes; xb.register_plugin("chip", library_path="lib.so")', None),
    ('os.environ["CHIP_MODE"] = "1"; del os.environ["CHIP_MODE"]\n'
     'xb.register_plugin("chip", library_path="lib.so")', None),
]  # fmt: skip


@needs_jax
@pytest.mark.parametrize(("body", "options"), PLAIN)
def test_a_registration_of_constants_is_not_run_again(
    site: Path, runs: list[int], body: str, options: Any
) -> None:
    made = made_for_jax(site, body)
    (row,) = made.table.rows
    plugin = load(row, made.table)
    assert isinstance(plugin, LibraryPlugin)
    assert (plugin.library(), plugin.client_options(settings())) == ("lib.so", options or {})
    assert plugin.priority == (512 if "512" in body else 3 if " 3," in body else 400)
    assert (row.registers, row.platform) == ("chip", "chip")
    assert runs == [1]


@needs_jax
def test_a_lazy_import_that_is_used_replaces_no_function(site: Path, runs: list[int]) -> None:
    pytest.importorskip("lazy_importer", reason="needs importlib-metadata's lazy imports")
    (site / "lazily.py").write_text(
        "from lazy_importer import lazy_importer\n__lazy_modules__ = {'colorsys'}\n"
        "with lazy_importer():\n    import colorsys\n"
    )
    importlib.import_module("lazily")
    made = made_for_jax(site, f"import lazily; lazily.colorsys.ONE_THIRD; {REGISTERS}")
    assert isinstance(load(made.table.rows[0], made.table), LibraryPlugin)
    assert runs == [1]


HIDDEN = 'getattr({0}, "register_" + "{1}")'
MORE = {  # the lines of initialize(), and the reason to run them here
    "options as a function": (REGISTERS[:-1] + ", options=lambda: {})", "its options are not"),
    "an option of another type": (REGISTERS[:-1] + ', options={"a": 1j})', "its options are not"),
    "a priority of another type": (REGISTERS[:-1] + ", priority=1.5)", "of an unknown kind"),
    "a function for topologies": (REGISTERS[:-1] + ", make_topology=print)", "objects of its"),
    "an unknown argument": (REGISTERS[:-1] + ", colour=1)", "of an unknown kind"),
    "a capsule": ('xb.register_plugin("chip", c_api=xb)', "objects of its process"),
    "a factory": ('xb.register_backend_factory("chip", print)', "objects of its process"),
    "two plugins": (f"{REGISTERS}; {REGISTERS.replace('chip', 'chop')}", "registers 2 plugins"),
    "nothing": ("pass", "it registers 0 plugins"),
    "a variable": (
        f'os.environ["CHIP_MODE"] = "1"; {REGISTERS}', "it changes the environment: CHIP_MODE"
    ),
    "a variable that C code sets": (
        f'import ctypes; ctypes.CDLL(None).setenv(b"CHIP_SECRET", b"1", 1); {REGISTERS}',
        "it changes the environment: CHIP_SECRET",
    ),
    "a library": (
        f'import ctypes; ctypes.CDLL(os.environ["CHIP_LIBRARY"]); {REGISTERS}', "/other.so"
    ),
    "an exception afterwards": (
        f"{REGISTERS}; raise ValueError('no profiler')", "ValueError: no profiler after it has"
    ),
    "a custom call": (
        "from jaxlib import xla_client\n"
        + HIDDEN.format("xla_client", "custom_call_target")
        + f'("chip_call", object(), platform="CHIP_TRIAL")\n{REGISTERS}',
        "it calls register_custom_call_target of jaxlib.xla_client",
    ),
    "a custom type": (
        "from jaxlib import xla_client\n"
        + HIDDEN.format("xla_client", "custom_type")
        + f'("chip_type", object(), platform="CHIP_TRIAL")\n{REGISTERS}',
        "it calls register_custom_type of jaxlib.xla_client",
    ),
    "a setting of jax": (
        f'import jax; jax.config.update("jax_pprint_use_color", False); {REGISTERS}',
        "it sets jax_pprint_use_color of jax",
    ),
    "a function of jax": (
        f"import jax.numpy; jax.numpy.tanh = print; {REGISTERS}", "it replaces jax.numpy.tanh"
    ),
    "a function of another module": (
        f"import loaded; loaded.function = print; {REGISTERS}", "it replaces loaded.function"
    ),
    "a method": (
        f"import loaded; loaded.Class.method = print; {REGISTERS}",
        "it replaces loaded.Class.method",
    ),
    "a class that it removes": (
        f"import loaded; vars(loaded).pop('Class', 0); {REGISTERS}",
        "it replaces loaded.Class, loaded.Class.method",
    ),
    "a lowering": (
        "from jax._src.interpreters import mlir; from jax._src import core\n"
        + HIDDEN.format("mlir", "lowering")
        + f'(core.Primitive("chip_trial"), print, platform="tpu")\n{REGISTERS}',
        "it calls register_lowering of jax._src.interpreters.mlir",
    ),
}  # fmt: skip
LOADED = """
def function(): pass
class Class:
    def method(self): pass
"""


@pytest.fixture
def loaded(site: Path) -> Iterator[None]:
    """A module and a jax that were loaded before, which plugins change and which are restored."""
    import jax

    (site / "loaded.py").write_text(LOADED)
    importlib.import_module("loaded")
    tanh, color = jax.numpy.tanh, jax.config.values["jax_pprint_use_color"]
    yield
    jax.numpy.tanh = tanh
    jax.config.update("jax_pprint_use_color", color)


@needs_cc
@needs_jax
@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize("what", MORE)
def test_a_registration_with_other_effects_is_run_again(
    site: Path, runs: list[int], what: str, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    library = compile_c(site, "int chip;").rename(site / "other.so")
    monkeypatch.setenv("CHIP_LIBRARY", str(library))
    body, reason = MORE[what]
    made = made_for_jax(site, body)
    row = made.table.rows[0]
    with caplog.at_level(logging.INFO):
        try:
            load(row, made.table)
        except PluginError:
            assert row.state in ("incompatible", "unavailable")
    assert runs == [1, 1]
    (said,) = [text for text in caplog.messages if "initialize() runs in the program" in text]
    assert reason in said
    assert ";" not in said, "it is the only reason"


@needs_jax
def test_a_library_that_the_trial_took_away_makes_it_run_here(site: Path, runs: list[int]) -> None:
    made = made_for_jax(site, 'xb.register_plugin("chip", library_path="/no/such/lib.so")')
    load(made.table.rows[0], made.table)
    assert runs == [1, 1]


STATIC = [
    "xla_client.register_custom_call_target('t', None)",
    "xla_client.register_custom_type_handler('CHIP', None)",
    "mlir.register_lowering(p, rule)",
    "jax.ffi.register_ffi_target('t', None)",
    "_register_all()",
    "part.register_all_lowerings()",
]


@needs_jax
@pytest.mark.parametrize("call", STATIC)
def test_a_registration_by_other_functions_is_not_tried(
    site: Path, runs: list[int], call: str
) -> None:
    """Plugins of CUDA, ROCm and oneAPI do: a trial would only add the time to import jax."""
    made = made_for_jax(site, f"{REGISTERS}\nif not xb: {call}")
    load(made.table.rows[0], made.table)
    assert runs == [1]


def test_code_that_a_child_cannot_run_has_no_trial(
    site: Path, runs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A jax that is already set up, a coordinator, code without a source; and the setting."""
    pytest.importorskip("jax")
    made = made_for_jax(site, REGISTERS, PLUGRT_PROBE_LIBRARIES="0")
    (row,) = made.table.rows
    assert jax_trial.try_initialize(row, made.config) == jax_trial.Trial()
    page = (ROOT / "docs/plugins.md").read_text(encoding="utf-8")
    for variable in ALONE:
        with monkeypatch.context() as patch:
            patch.setenv(variable, "1")
            assert jax_trial.try_initialize(row, settings()) == jax_trial.Trial(), variable
        assert f"`{variable}`" in page
    with monkeypatch.context() as patch:
        patch.setattr(jax_trial, "_has_jax", lambda: "jax" in sys.modules)
        assert jax_trial.try_initialize(row, settings()) == jax_trial.Trial()
    (site / "made_chip.py").write_text("def (")
    (row,) = registry(path=site).table.rows
    assert jax_trial.try_initialize(row, settings()) == jax_trial.Trial()
    assert runs == []


@needs_jax
@pytest.mark.parametrize("files", [(), ("lib.so",)])
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise ValueError('No AMD GPUs were found')", "ValueError: No AMD GPUs were found"),
        ("raise SystemExit(3)", "3"),
        ("import not_installed_here", "not_installed_here"),
    ],
)
def test_the_files_decide_if_the_code_raises_before_it_registers(
    site: Path, runs: list[int], files: tuple[str, ...], body: str, words: str
) -> None:
    made = made_for_jax(site, body, *files)
    (row,) = made.table.rows
    if files:
        plugin = load(row, made.table)
        assert isinstance(plugin, LibraryPlugin)
        assert plugin.library() == str(site / "lib.so")
        assert row.reason.startswith("its own code did not register it: ")
    else:
        with pytest.raises(PluginBroken, match=words):
            load(row, made.table)
    assert words in row.reason
    assert len(runs) == (1 if files else 2)


BRIDGE = """
def register_plugin(plugin_name, priority=400, library_path=None, options=None):
    raise AssertionError("jax's own")
"""


@pytest.fixture
def small_jax(site: Path, hides_jax: None) -> Path:
    """A package jax with only the function, since importing the real one costs seconds."""
    (site / "jax" / "_src").mkdir(parents=True)
    (site / "jax" / "__init__.py").touch()
    (site / "jax" / "_src" / "__init__.py").touch()
    (site / "jax" / "_src" / "xla_bridge.py").write_text(BRIDGE)
    return site


def test_neither_the_code_nor_jax_is_imported_here(small_jax: Path, tmp_path: Path) -> None:
    """Nor does the second program start a child."""
    made_for_jax(small_jax, REGISTERS)
    code = """
        import sys
        from plugrt.plugins import Backends
        from plugrt.plugins.starting import jax_trial
        from plugrt.plugins.starting.loading import load
        children, run_in_child = [], jax_trial.run_in_child
        def run(*arguments, **named):
            children.append(run_in_child(*arguments, **named))
            return children[-1]
        jax_trial.run_in_child = run
        made = Backends(path=sys.argv[1:])
        (row,) = made.table.rows
        library = load(row, made.table).library()
        print(library, {"jax", "made_chip"} & set(sys.modules), len(children))
    """
    cache = str(tmp_path / "cache")
    for children in (1, 0):
        arguments = (str(small_jax),)
        done = run_python(code, small_jax, arguments=arguments, PLUGRT_CACHE_DIR=cache)
        assert (done.returncode, done.stdout) == (0, f"lib.so set() {children}\n"), done.stderr


@pytest.mark.parametrize("files", [(), ("lib.so",)])
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("import sys; print('no chip', file=sys.stderr, flush=True); os.abort()",
         "was killed by SIGABRT in its initialize(); its last output: no chip"),
        ("os._exit(0)", "ended with exit code 0 in its initialize()"),
        ("import time; time.sleep(60)", "had not ended after 1 s in its initialize()"),
    ],
)  # fmt: skip
def test_code_that_ends_its_process_does_not_end_this_one(
    small_jax: Path, files: tuple[str, ...], body: str, words: str
) -> None:
    made = made_for_jax(small_jax, body, *files, PLUGRT_PROBE_SECONDS="1")
    (row,) = made.table.rows
    if files:
        plugin = load(row, made.table)
        assert isinstance(plugin, LibraryPlugin)
        assert plugin.library() == str(small_jax / "lib.so")
    else:
        with pytest.raises(PluginBroken):
            load(row, made.table)
    assert words in row.reason
    assert "made_chip" not in sys.modules


@needs_cc
@pytest.mark.parametrize("made_by", ["jax_plugins", "import", "probe"])
def test_doctor_says_which_plugin_changed_the_environment(small_jax: Path, made_by: str) -> None:
    change = 'import os; os.environ["CHIP_MODE"] = "1"; os.environ.pop("CHIP_SECRET")'
    if made_by == "jax_plugins":
        library = tiny_library(small_jax)
        made_for_jax(
            small_jax, f"{change}\nxb.register_plugin('chip', library_path={str(library)!r})"
        )
    elif made_by == "import":
        source = (
            f"from support.fake_client import FakePlugin\n{change}\nplugin = FakePlugin('chip')"
        )
        install_plugin(small_jax, "chip", source)
    else:
        source = f"""
from support.fake_client import FakePlugin
class Chip(FakePlugin):
    def probe(self):
        {change}
        return super().probe()
plugin = Chip('chip')
"""
        install_plugin(small_jax, "chip", source)
    install_plugin(small_jax, "other")
    done = run_cli(
        "doctor", "--json", folders=(small_jax,), JAX_PLATFORMS="chip,other", CHIP_SECRET="x"
    )
    rows = {row["name"]: row for row in json.loads(done.stdout)["candidates"]}
    assert rows["chip"]["state"] == "initialised"
    said = "its code changed the environment: CHIP_MODE, CHIP_SECRET"
    assert {name: rows[name]["reason"] for name in ("chip", "other")} == {"chip": said, "other": ""}
