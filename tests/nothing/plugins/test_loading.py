"""`plugrt.plugins.starting.loading`: runs a plugin's code, and names it in any failure."""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from plugrt import monitoring
from plugrt.errors import PluginBroken, PluginError, PluginIncompatible, PluginUnavailable
from plugrt.plugins import Backends, LibraryPlugin
from plugrt.plugins.starting.loading import load
from support.distributions import install, install_plugin, run_warm
from support.fake_client import FakePlugin
from support.registries import registry


def load_only(site: Path, **environ: str) -> tuple[Backends, PluginError]:
    made = registry(path=site, **environ)
    (record,) = made.table.rows
    with pytest.raises(PluginError) as error:
        load(record, made.table)
    with pytest.raises(type(error.value)) as second:
        load(record, made.table)
    assert str(second.value) == str(error.value), "a failure must stay the same"
    assert record.failure is not None
    return made, error.value


def test_a_healthy_plugin(site: Path) -> None:
    install_plugin(site, "chip", priority=5)
    made = registry(path=site)
    (record,) = made.table.rows
    plugin = load(record, made.table)
    assert isinstance(plugin, FakePlugin)
    assert load(record, made.table) is plugin
    assert (record.state, record.priority) == ("loaded", 5)
    assert record.elapsed_ms > 0
    source = (
        "from support.fake_client import FakePlugin\nclass Of:\n    chip = FakePlugin('other')\n"
    )
    install(site, "other", {"plugrt.plugins": {"other": "other:Of.chip"}}, {"other": source})
    other = registry(path=site, PLUGRT_PLUGINS_BLOCK="chip")
    assert load(other.table.rows[-1], other.table).name == "other"


def test_loading_is_monitored(site: Path) -> None:
    install_plugin(site, "chip")
    heard: list[tuple[str, float, object]] = []

    def listener(event: str, seconds: float, /, **kwargs: str | int) -> None:
        heard.append((event, seconds, kwargs))

    monitoring.register_event_duration_secs_listener(listener)
    try:
        made = registry(path=site)
        load(made.table.rows[0], made.table)
    finally:
        monitoring.unregister_event_duration_listener(listener)
    ((event, seconds, kwargs),) = heard
    assert (event, kwargs) == (monitoring.PLUGIN_LOAD, {"plugin": "chip"})
    assert 0 < seconds < 10


@pytest.mark.parametrize(
    ("source", "facts"),
    [
        ("raise RuntimeError('no luck')", ["RuntimeError", "no luck"]),
        ("raise ImportError('bad ABI')", ["ImportError", "bad ABI"]),
        ("import nosuchmodule_xyz", ["'nosuchmodule_xyz'", "not installed"]),
        ("raise SystemExit(3)", ["sys.exit(3)"]),
        ("class E(BaseException): pass\nraise E('odd')", ["E: odd"]),
        ("x = 1 +", ["SyntaxError"]),
        ("pass", ["no 'plugin'"]),
        ("plugin = 3", ["int", "subclass Plugin"]),
        ("from support.fake_client import FakePlugin as plugin", ["the class", "instance"]),
        ("from support.fake_client import FakePlugin\nplugin = FakePlugin('other')",
         ["'chip'", "'other'", "names equal"]),
    ],
)  # fmt: skip
def test_a_broken_plugin(site: Path, source: str, facts: list[str]) -> None:
    install_plugin(site, "chip", source, version="3.2")
    made, error = load_only(site)
    assert isinstance(error, PluginBroken)
    for fact in ("'chip'", "chip-dist 3.2", *facts):
        assert fact in str(error)
    (record,) = made.table.rows
    assert record.state == "broken"
    assert facts[0] in record.reason


def test_the_traceback_is_kept(site: Path) -> None:
    install_plugin(site, "chip", "def boom():\n    raise RuntimeError('deep')\nboom()")
    made, error = load_only(site)
    assert "in boom" in made.table.rows[0].traceback
    assert isinstance(error.__cause__, RuntimeError)


def test_a_module_that_is_not_there_is_told_from_a_missing_dependency(site: Path) -> None:
    install(site, "chip-dist", {"plugrt.plugins": {"chip": "not_there.sub:plugin"}})
    _, error = load_only(site)
    assert "'not_there.sub', which is not there" in str(error)
    assert "reinstall chip-dist" in str(error)


def test_a_sick_distribution_is_broken(site: Path) -> None:
    install(site, "chip-dist", {"plugrt.plugins": {"chip": "a b"}})
    _, error = load_only(site)
    assert "malformed" in str(error)
    assert "chip-dist" in str(error)


@pytest.mark.parametrize(
    ("name", "cls", "state"),
    [
        ("PluginIncompatible", PluginIncompatible, "incompatible"),
        ("PluginUnavailable", PluginUnavailable, "unavailable"),
    ],
)
def test_a_plugin_may_say_itself_what_is_wrong(
    site: Path, name: str, cls: type[PluginError], state: str
) -> None:
    source = f"from plugrt.errors import {name}\nraise {name}('needs driver 12')"
    install_plugin(site, "chip", source)
    made, error = load_only(site)
    assert type(error) is cls
    assert str(error) == "'chip' (chip-dist 1.0): needs driver 12"
    assert made.table.rows[0].state == state


def test_ctrl_c_during_an_import_is_the_users(site: Path) -> None:
    install_plugin(site, "chip", "raise KeyboardInterrupt")
    made = registry(path=site)
    (record,) = made.table.rows
    with pytest.raises(KeyboardInterrupt):
        load(record, made.table)
    assert record.failure is None
    assert record.state == "found"


def test_a_slow_import_is_named_with_what_it_waits_for(
    site: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    until = time.monotonic() + 60
    warned = SimpleNamespace(is_seen=lambda: caplog.messages or time.monotonic() > until)
    monkeypatch.setitem(sys.modules, "warned", warned)
    source = """
        import time, warned
        from support.fake_client import FakePlugin
        def poll_metadata_server():
            while not warned.is_seen():
                time.sleep(0.05)
        poll_metadata_server()
        plugin = FakePlugin("chip")
    """
    install(site, "chip-dist", {"plugrt.plugins": {"chip": "m_slow:plugin"}}, {"m_slow": source})
    made = registry(path=site, PLUGRT_LOAD_WARN_SECONDS="0.05")
    with caplog.at_level(logging.WARNING, "plugrt"):
        load(made.table.rows[0], made.table)
    (message,) = caplog.messages
    for fact in ("importing", "'chip' (chip-dist 1.0)", "poll_metadata_server", "m_slow.py"):
        assert fact in message
    assert "PLUGRT_PLUGINS_BLOCK=chip" in message


def test_a_quick_import_is_not_warned_about(site: Path, caplog: pytest.LogCaptureFixture) -> None:
    install_plugin(site, "chip")
    made = registry(path=site, PLUGRT_LOAD_WARN_SECONDS="30")
    load(made.table.rows[0], made.table)
    assert caplog.messages == []


def test_a_library_of_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "lib.so"
    file.write_bytes(b"")
    names = {"PJRT_NAMES_AND_LIBRARY_PATHS": f"mine:{file}"}
    made = registry(**names)
    (record,) = made.table.rows
    plugin = load(record, made.table)
    assert isinstance(plugin, LibraryPlugin)
    assert plugin.probe().available
    assert plugin.library() == str(file)


def test_a_library_that_does_not_exist_names_the_variable() -> None:
    made = registry(PJRT_NAMES_AND_LIBRARY_PATHS="mine:/no/lib.so")
    (record,) = made.table.rows
    with pytest.raises(PluginBroken) as error:
        load(record, made.table)
    for fact in ("'mine'", "/no/lib.so", "PJRT_NAMES_AND_LIBRARY_PATHS", "does not exist"):
        assert fact in str(error.value)


def test_steps_are_traced(site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    install_plugin(site, "chip")
    made = registry(path=site, PLUGRT_TRACE_PLUGINS="1")
    load(made.table.rows[0], made.table)
    lines = capfd.readouterr().err.splitlines()
    assert lines[0].startswith("plugrt: found 1 candidates in")
    assert lines[1] == "plugrt: found 'chip' (chip-dist 1.0) in plugrt.plugins: found"
    assert lines[2] == "plugrt: loading 'chip' (chip-dist 1.0): chip_module:plugin"


def test_a_plugin_that_aborts_at_import_is_harmless_unless_selected(tmp_path: Path) -> None:
    """jax#24901: a mismatched plugin segfaults even with JAX_PLATFORMS=cpu."""
    code = "import plugrt; print([str(d.platform) for d in plugrt.devices()])"
    install_plugin(tmp_path, "bomb", "import os; os.abort()")
    for group in ("jax_plugins", "xla_plugins"):
        (tmp_path / group).mkdir()
        (tmp_path / group / "bomb2.py").write_text("import os; os.abort()")
    install_plugin(tmp_path, "good")
    done = run_warm(code, tmp_path, JAX_PLATFORMS="good")
    assert (done.returncode, done.stdout) == (0, "['good']\n"), done.stderr
    assert run_warm(code, tmp_path, JAX_PLATFORMS="bomb").returncode < 0
