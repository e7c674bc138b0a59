"""Plugins made for PyTorch/XLA, without torch: their library and options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plugrt.errors import PluginBroken, PluginUnavailable
from plugrt.plugins.starting import loading as torch_plugins
from support.distributions import install, run_cli, run_warm
from support.registries import record, registry, settings

RECORD = record("chip", "torch_xla_plugins", "chip-torch", "1.0", "chip_torch:Chip")


class Chip:
    """The methods of torch_xla's DevicePlugin, and one more."""

    def library_path(self) -> Any:
        return Path("/x/chip.so")

    def client_create_options(self) -> dict[str, Any]:
        return {"a": 1}

    def host_index(self) -> int:
        return 0


class Bare:
    def library_path(self) -> str:
        return "/x/bare.so"


class Absent(Bare):
    def __init__(self) -> None:
        raise OSError("libchip is not installed")


@pytest.mark.parametrize("offered", [Chip, Chip()])
def test_path_and_options(offered: Any) -> None:
    plugin = torch_plugins.make_plugin(RECORD, offered)
    assert (plugin.name, plugin.library()) == ("chip", "/x/chip.so")
    assert plugin.client_options(settings()) == {"a": 1}


def test_options_are_no_duty() -> None:
    assert torch_plugins.make_plugin(RECORD, Bare).client_options(settings()) == {}


def test_an_os_error_means_absence_as_for_torch_xla() -> None:
    with pytest.raises(PluginUnavailable, match=r"chip-torch 1.0.*libchip is not installed"):
        torch_plugins.make_plugin(RECORD, Absent)


@pytest.mark.parametrize("offered", [3, object, "/x.so"])
def test_a_torch_plugin_without_a_library_path_is_broken(offered: Any) -> None:
    with pytest.raises(PluginBroken, match=r"chip-torch 1.0.*no library_path\(\)"):
        torch_plugins.make_plugin(RECORD, offered)


NEEDS_TORCH = """
from torch_xla.experimental import plugins
class Chip(plugins.DevicePlugin):
    def library_path(self): return "/x/chip.so"
"""


def test_a_module_that_imports_torch_says_so(tmp_path: Path) -> None:
    entry = {"torch_xla.plugins": {"chip": "chip_torch:Chip"}}
    install(tmp_path, "chip-torch", entry, {"chip_torch": NEEDS_TORCH})
    done = run_cli("devices", folders=(tmp_path,), JAX_PLATFORMS="chip")
    assert done.returncode != 0
    assert "'chip' (chip-torch 1.0)" in done.stderr
    assert "'torch_xla'" in done.stderr
    assert "not installed" in done.stderr


def test_it_is_listed_and_imported_by_no_automatic_choice(tmp_path: Path) -> None:
    entry = {"torch_xla.plugins": {"chip": "chip_torch:Chip"}}
    install(tmp_path, "chip-torch", entry, {"chip_torch": "raise SystemExit('imported')"})
    done = run_warm(
        """
        import plugrt
        plugrt.devices()
        [row] = [r for r in plugrt.plugins.table() if r.name == "chip"]
        print(row.source, row.state, sep=", ")
        """,
        tmp_path,
    )
    assert done.stdout == "torch_xla_plugins, not selected\n", done.stderr


def test_the_plugin_for_jax_precedes_others_of_its_package(tmp_path: Path) -> None:
    """As in pjrt-plugin-tt: without torch, its name must not select a plugin that needs torch."""
    groups = {
        "jax_plugins": {"pjrt_plugin_tt": "jax_plugin_tt"},
        "torch_xla.plugins": {"tt": "torch_plugin_tt:TTPlugin"},
    }
    install(tmp_path, "pjrt-plugin-tt", groups)
    table = registry(path=tmp_path).table
    assert [(row.name, row.source) for row in table.rows if not row.hidden] == [
        ("tt", "jax_plugins")
    ]
    for name in ("tt", "pjrt_plugin_tt"):
        assert [row.value for row in table.find(name, "the test")] == ["jax_plugin_tt"]
