"""`Backends.topology`: a library of the environment is opened elsewhere first, and not started."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from plugrt import capi, config
from plugrt.capi import ProbeResult
from plugrt.errors import PluginBroken, PluginUnavailable
from plugrt.plugins import Backends, LibraryPlugin, vendors
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


class Calls:
    """Stands for capi: notes what is asked of it; trials with a client fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, opened: ProbeResult) -> None:
        self.trials: list[bool] = []
        self.topologies: list[str] = []
        self._opened = opened
        monkeypatch.setattr(capi, "probe_library", self._probe)
        monkeypatch.setattr(capi, "load_library", lambda path, hints: path)
        monkeypatch.setattr(capi, "create_topology", self._topology)

    def _probe(self, path: str, seconds: float, *, start: bool, **more: Any) -> ProbeResult:
        self.trials.append(start)
        return ProbeResult("unavailable", "there is no chip") if start else self._opened

    def _topology(self, library: str, name: str, options: Any) -> str:
        self.topologies.append(name)
        return f"topology {name} of {library}"


def of(library: Path) -> Backends:
    return registry(PJRT_NAMES_AND_LIBRARY_PATHS=f"mine:{library}")


def test_no_client_is_tried_and_the_opening_is_remembered(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial with a client was part of loading, which took 20 s or refused."""
    calls = Calls(monkeypatch, ProbeResult("ok"))
    for _ in range(2):
        made = of(library)
        assert str(made.topology("mine", "2x2", {})) == f"topology 2x2 of {library}"
        assert made.table.rows[0].state == "loaded"
    assert calls.trials == [False]
    with pytest.raises(PluginUnavailable, match="no chip"):
        made.get("mine")
    assert calls.trials == [False, True], "to have been opened is not to have been started"
    assert made.topology("mine", "4x4", {})
    assert calls.topologies == ["2x2", "2x2", "4x4"]


def test_a_library_that_cannot_be_opened_elsewhere_is_not_opened_here(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(monkeypatch, ProbeResult("broken", "the library ended the process", "mend it"))
    for _ in range(2):
        with pytest.raises(PluginBroken, match=r"topology\('mine', '2x2'\).*ended the process"):
            of(library).topology("mine", "2x2", {})
    assert calls.trials == [False, False]
    assert calls.topologies == []


def test_loading_opens_and_tries_nothing(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls(monkeypatch, ProbeResult("broken", "x"))
    made = of(library)
    assert isinstance(load(made.table.rows[0], made.table), LibraryPlugin)
    assert calls.trials == []


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
