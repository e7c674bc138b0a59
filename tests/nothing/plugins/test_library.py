"""`LibraryPlugin`: what it says without opening the library."""

from __future__ import annotations

from pathlib import Path

from plugrt.config import Config
from plugrt.plugins import LibraryPlugin, Registry


def test_probe_tells_whether_the_file_is_there(tmp_path: Path) -> None:
    file = tmp_path / "lib.so"
    answer = LibraryPlugin("x", file).probe()
    assert not answer.available
    assert str(file) in answer.reason
    file.touch()
    assert LibraryPlugin("x", file).probe().available
    assert LibraryPlugin("x", "libx.so").probe().available, "the loader searches for a bare name"


def test_options_are_merged_and_the_users_win() -> None:
    config = Config({"JAX_PJRT_CLIENT_CREATE_OPTIONS": "b:3;c:x"})
    assert LibraryPlugin("x", "l", {"a": 1, "b": 2}).client_options(config) == {
        "a": 1, "b": 3, "c": "x"
    }  # fmt: skip
    assert LibraryPlugin("x", "l", lambda: {"z": True}).client_options(Config({})) == {"z": True}


def test_it_is_a_well_formed_plugin() -> None:
    plugin = LibraryPlugin("x", "/l.so", priority=5, platform="p", aliases=["q"], experimental=True)
    record = Registry(Config({}), path=[]).register(plugin)
    assert (record.name, record.priority, record.platform) == ("x", 5, "p")
    assert plugin.experimental
    assert plugin.aliases == ("q",)
