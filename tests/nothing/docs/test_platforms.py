"""docs/platforms.md: other systems, simulated by removing the features that they lack."""

from __future__ import annotations

import os
import platform
import weakref
from pathlib import Path

import pytest

from plugrt.base import files
from plugrt.capi.abi import process_map
from plugrt.capi.abi._abi import ffi
from plugrt.capi.loading.extension_chain import EXTENSION_NAMES, read_chain
from plugrt.errors import FileRefused
from plugrt.execution.compilation.cache_key import cpu_features
from plugrt.lifetime import forks
from plugrt.plugins.discovery import env_paths
from plugrt.processes import keeper
from support.registries import record


@pytest.mark.parametrize("name", ["libmine.so", "libmine.dylib", "mine.dll"])
def test_libraries_of_other_systems_are_recognised(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"GetPjrtApi")
    (tmp_path / "readme.txt").write_text("no library")
    row = record("mine", "xla_plugins", location=str(tmp_path))
    assert row.description.library == str(tmp_path / name)


def test_paths_of_windows_hold_colons() -> None:
    [record] = env_paths.parse_libraries(r"mine;C:\chip\mine.dll", separator=";")
    assert (record.name, record.library) == ("mine", r"C:\chip\mine.dll")


def test_without_proc_addresses_other_than_0_are_trusted(tmp_path: Path) -> None:
    assert not process_map.AddressMap().readable(0x10, 8), "here a wild pointer is seen"
    without = process_map.AddressMap(tmp_path / "absent")
    assert without.readable(0x10, 8)
    assert not without.readable(0, 8)


@pytest.mark.parametrize("unknown", [len(EXTENSION_NAMES), 4711, 2**31 - 1])
def test_without_proc_unknown_extensions_are_not_followed(unknown: int, tmp_path: Path) -> None:
    nodes = [ffi.new("PJRT_Extension_Base*") for _ in range(3)]
    kinds = [EXTENSION_NAMES.index("Layouts"), unknown, EXTENSION_NAMES.index("FFI")]
    for node, kind, after in zip(nodes, kinds, [*nodes[1:], ffi.NULL], strict=True):
        node.struct_size = ffi.sizeof("PJRT_Extension_Base")
        node.type, node.next = kind, after
    followed = read_chain(nodes[0], "lib.so", process_map.AddressMap())
    assert list(followed) == ["Layouts", f"type {unknown}", "FFI"]
    without = process_map.AddressMap(tmp_path / "absent")
    assert list(read_chain(nodes[0], "lib.so", without)) == ["Layouts"]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs a system with user ids")
def test_without_user_ids_ownership_is_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(FileRefused):
        files.private_folder(tmp_path)
    monkeypatch.delattr(os, "geteuid")
    assert files.private_folder(tmp_path) == str(tmp_path)


def test_without_cpuinfo_the_processor_is_told_by_name(tmp_path: Path) -> None:
    names = ("arm", "i386", "arm", platform.processor(), None)
    words = [cpu_features(tmp_path / "absent", name) for name in names]
    assert len({*words[:3]}) == 2
    assert words[3] == words[4]


def test_without_prctl_the_keeper_goes_on() -> None:
    assert keeper.find_prctl("darwin")(1, 9) is None


def test_without_forks_nothing_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "register_at_fork", raising=False)

    class Nothing:
        started_names = ("cpu",)

    here = Nothing()
    forks.warn_of_forks(here)
    assert weakref.getweakrefcount(here) == 0, "a callback would look at it through one"
    monkeypatch.undo()
    if hasattr(os, "register_at_fork"):
        forks.warn_of_forks(here)
        assert weakref.getweakrefcount(here) == 1
