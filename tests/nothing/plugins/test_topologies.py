"""`Backends.topology`: a child opens the environment's library first; no client is started."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from plugrt import config
from plugrt.capi import ProbeResult
from plugrt.errors import PluginBroken, PluginUnavailable
from plugrt.plugins import LibraryPlugin, vendors
from plugrt.plugins.library import set_start_variables, set_variables
from plugrt.plugins.starting.loading import load
from support.fake_topology import FakeTopology, FarPlugin
from support.registries import registry


@pytest.fixture
def library(tmp_path: Path) -> Path:
    file = tmp_path / "lib.so"
    file.write_bytes(b"a library")
    return file


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path) -> Any:
    with config.override(cache_dir=str(tmp_path / "cache")):
        yield


class Mine(LibraryPlugin):
    """A plugin that records trials and topologies; trials with a client fail."""

    def __init__(self, library: Path, opened: ProbeResult) -> None:
        super().__init__("mine", str(library))
        self.trials: list[bool] = []
        self.topologies: list[str] = []
        self._opened = opened

    def try_in_child(self, *_: Any, start: bool = True, **more: Any) -> ProbeResult:
        self.trials.append(start)
        return ProbeResult("unavailable", "there is no chip") if start else self._opened

    def create_topology(self, name: str, options: Any) -> Any:
        self.topologies.append(name)
        return f"topology {name} of {self.library()}"


def test_no_client_is_tried_and_the_opening_is_remembered(library: Path) -> None:
    """Earlier, a trial with a client was part of loading, which needed 20 s or refused."""
    mine = Mine(library, ProbeResult("ok"))
    for _ in range(2):
        made = registry(mine)
        assert str(made.topology("mine", "2x2", {})) == f"topology 2x2 of {library}"
        assert made.table.rows[0].client is None
    assert mine.trials == [False]
    with pytest.raises(PluginUnavailable, match="no chip"):
        made.get("mine")
    assert mine.trials == [False, True], "to have been opened is not to have been started"
    assert made.topology("mine", "4x4", {})
    assert mine.topologies == ["2x2", "2x2", "4x4"]


def test_a_library_that_cannot_be_opened_elsewhere_is_not_opened_here(library: Path) -> None:
    mine = Mine(library, ProbeResult("broken", "the library ended the process", "mend it"))
    for _ in range(2):
        with pytest.raises(PluginBroken, match=r"topology\('mine', '2x2'\).*ended the process"):
            registry(mine).topology("mine", "2x2", {})
    assert mine.trials == [False, False]
    assert mine.topologies == []


def test_loading_opens_and_tries_nothing(library: Path) -> None:
    made = registry(PJRT_NAMES_AND_LIBRARY_PATHS=f"mine:{library}")
    assert isinstance(load(made.table.rows[0], made.table), LibraryPlugin)
    assert made.table.rows[0].state == "loaded"
    made = registry(mine := Mine(library, ProbeResult("broken", "x")))
    load(made.table.rows[0], made.table)
    assert mine.trials == []


def test_variables_are_set_while_a_library_starts_and_are_the_users_if_he_set_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PLUGRT_TEST_A", "mine")
    monkeypatch.delenv("PLUGRT_TEST_B", raising=False)
    with set_variables({"PLUGRT_TEST_A": "1", "PLUGRT_TEST_B": "2"}):
        assert (os.environ["PLUGRT_TEST_A"], os.environ["PLUGRT_TEST_B"]) == ("mine", "2")
    assert os.environ["PLUGRT_TEST_A"] == "mine"
    assert "PLUGRT_TEST_B" not in os.environ


@pytest.mark.parametrize(
    ("file", "device", "expected"),
    [("/x/libtpu.so", False, True), ("/x/libtpu.so", True, False), ("/x/other.so", False, False)],
)
def test_libtpu_asks_no_metadata_server_where_there_is_no_tpu(
    file: str, device: bool, expected: bool, show_hardware: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = [h for h in vendors.HARDWARE if "tpu" in h.plugins] if device else []
    show_hardware(seen)
    monkeypatch.delenv("TPU_SKIP_MDS_QUERY", raising=False)
    with set_start_variables(file):
        assert ("TPU_SKIP_MDS_QUERY" in os.environ) is expected
    assert "TPU_SKIP_MDS_QUERY" not in os.environ


def test_a_topology_is_known_by_its_plugin_and_its_platform() -> None:
    made = registry()
    made.register(FarPlugin("mine"))
    assert made.platforms_of(made.topology("mine", "2", {})) == ("mine", "far")
    assert made.platforms_of(FakeTopology(2, {})) == ("far",), "one that no plugin here has made"
