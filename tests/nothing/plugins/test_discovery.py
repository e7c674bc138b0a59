"""`plugrt.plugins.discovery.installed_plugins`: finds all, broken ones too; imports none."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

import plugrt
from plugrt.errors import PluginBroken
from plugrt.plugins import Record
from plugrt.plugins.discovery.installed_plugins import discover
from support.distributions import PLUGIN, install, install_plugin
from support.fake_client import FakePlugin
from support.registries import registry


def only(path: Path, *more: Path) -> Record:
    (record,) = discover([str(path), *map(str, more)]).records
    return record


def test_a_plugin_is_found_with_its_distribution(tmp_path: Path) -> None:
    info = install_plugin(tmp_path, "chip", distribution="my-chip", version="2.3")
    record = only(tmp_path)
    assert (record.name, record.source, record.state) == ("chip", "plugrt.plugins", "found")
    assert (record.distribution, record.version) == ("my-chip", "2.3")
    assert record.value == "my_chip_module:plugin"
    assert record.location == str(info)
    assert record.who == "my-chip 2.3"


def test_nothing_is_imported(tmp_path: Path) -> None:
    install_plugin(tmp_path, "chip", "import os; os.abort()")
    folder = tmp_path / "jax_plugins" / "boom"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("import os; os.abort()")
    before = set(sys.modules)
    names = [r.name for r in discover([str(tmp_path)]).records]
    assert names == ["chip", "boom"]
    assert {m for m in set(sys.modules) - before if "plug" in m or "module" in m} == set()


@pytest.mark.parametrize("group", ["jax_plugins", "xla_plugins"])
def test_groups_made_for_jax(tmp_path: Path, group: str) -> None:
    install(tmp_path, "xla-chip-pjrt", {group: {"xla_chip12_pjrt": f"{group}.xla_chip12"}})
    record = only(tmp_path)
    assert record.source == group
    assert record.name == "xla_chip12"
    assert all(record.matches_name(n) for n in ("xla_chip12", "xla_chip12_pjrt", "chip12", "chip"))
    assert record.matches_name("chip@xla_chip.pjrt")
    assert not record.matches_name("chip@other")


def test_xla_cpu_does_not_answer_to_cpu(tmp_path: Path) -> None:
    install(tmp_path, "xla-cpu-pjrt", {"xla_plugins": {"xla_cpu_pjrt": "xla_plugins.xla_cpu_pjrt"}})
    record = only(tmp_path)
    assert record.name == "xla_cpu"
    assert not record.matches_name("cpu")


def test_namespace_modules_are_found_and_merged_with_entry_points(tmp_path: Path) -> None:
    for name in ("named", "bare"):
        folder = tmp_path / "jax_plugins" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("")
    install(tmp_path, "named-dist", {"jax_plugins": {"named": "jax_plugins.named"}})
    records = discover([str(tmp_path)]).records
    assert [(r.name, r.distribution, r.value) for r in records] == [
        ("named", "named-dist", "jax_plugins.named"),
        ("bare", "", "jax_plugins.bare"),
    ]


def test_a_namespace_over_two_folders(tmp_path: Path) -> None:
    for part in ("a", "b"):
        folder = tmp_path / part / "xla_plugins"
        folder.mkdir(parents=True)
        (folder / f"{part}.py").write_text("")
    records = discover([str(tmp_path / "a"), str(tmp_path / "b")]).records
    assert [r.value for r in records] == ["xla_plugins.a", "xla_plugins.b"]


def test_an_editable_install_is_found_once(tmp_path: Path) -> None:
    """It occurs twice: as dist-info in site-packages, and as egg-info beside the sources."""
    site, src = tmp_path / "site", tmp_path / "src"
    install_plugin(site, "chip", distribution="my-chip")
    egg = src / "my_chip.egg-info"
    egg.mkdir(parents=True)
    (egg / "entry_points.txt").write_text("[plugrt.plugins]\nchip = my_chip_module:plugin\n")
    assert only(site, src).location.startswith(str(site))
    (egg / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: my-chip\nVersion: 7\n")
    assert only(src, site).version == "7"


def test_other_groups_and_comments_are_skipped(tmp_path: Path) -> None:
    install(tmp_path, "x", {"console_scripts": {"x": "x:main"}})
    info = install(tmp_path, "y", {})
    text = "# [plugrt.plugins]\n; c\n[console_scripts]\nplugrt.plugins = y:z\n"
    (info / "entry_points.txt").write_text(text)
    assert discover([str(tmp_path)]).records == []


def test_a_path_entry_that_is_missing_is_no_fault(tmp_path: Path) -> None:
    assert discover([str(tmp_path / "nowhere")]).records == []


@pytest.mark.parametrize(
    "content", [b"\xff\xfe[plugrt.plugins]\nx = y:z", b"[plugrt.plugins]\nx = \xe9:z"]
)
def test_an_undecodable_file_is_a_row(tmp_path: Path, content: bytes) -> None:
    info = install_plugin(tmp_path, "chip", distribution="sick")
    install_plugin(tmp_path, "good")
    (info / "entry_points.txt").write_bytes(content)
    sick = {r.distribution: r for r in discover([str(tmp_path)]).records}
    assert sick["good-dist"].state == "found"
    assert sick["sick"].state == "broken"
    assert "UTF-8" in sick["sick"].reason
    assert "reinstall sick" in sick["sick"].cure


def test_an_entry_points_folder_is_a_row(tmp_path: Path) -> None:
    info = install_plugin(tmp_path, "chip")
    (info / "entry_points.txt").unlink()
    (info / "entry_points.txt").mkdir()
    assert "cannot be read" in only(tmp_path).reason


@pytest.mark.parametrize("value", ["", "no spaces please", "a-b:c", "pkg:", ":x", "a:b:c"])
def test_a_malformed_value_is_a_row(tmp_path: Path, value: str) -> None:
    install(tmp_path, "sick", {"plugrt.plugins": {"chip": value}})
    record = only(tmp_path)
    assert (record.name, record.state) == ("chip", "broken")
    assert "malformed" in record.reason


ENTRY = "[plugrt.plugins]\nchip = m:plugin\n"
ODD_FILES = [  # (content of entry_points.txt, name of the row, fact of the reason)
    ("\ufeff" + ENTRY, "chip", ""),
    (ENTRY.replace("]", ""), "sick-dist", "the header '[plugrt.plugins', which does not end with"),
    (ENTRY.replace("]", "] ; ours"), "sick-dist", "the header '[plugrt.plugins] ; ours', which"),
    ("[jax_plugins\nchip = m", "sick-dist", "the header '[jax_plugins', which does not end with"),
    ("[plugrt.doctor\nchip = m", "sick-dist", "the header '[plugrt.doctor', which does not end"),
    ("[console_scripts\na = b\n" + ENTRY, "chip", ""),
    (ENTRY.encode("utf-16"), "sick-dist", "is not UTF-8"),
    (ENTRY.encode("utf-16-le"), "sick-dist", "is not UTF-8"),
    (ENTRY.encode() + b"\xff", "sick-dist", "is not UTF-8"),
]


@pytest.mark.parametrize(("content", "name", "fact"), ODD_FILES)
def test_odd_entry_points_are_a_row_and_a_warning(
    tmp_path: Path, content: str | bytes, name: str, fact: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Earlier, some gave no row, and the others were omitted from an automatic choice silently."""
    info = install(tmp_path, "sick-dist", {}, {"m": PLUGIN.format(name="chip", priority=0)})
    whole = content.encode() if isinstance(content, str) else content
    (info / "entry_points.txt").write_bytes(whole)
    row = only(tmp_path)
    assert (row.name, row.distribution) == (name, "sick-dist")
    assert fact in row.reason
    assert (row.state == "broken") == bool(fact) == bool(row.cure)
    if fact:
        made = registry(FakePlugin("cpu", priority=0), path=tmp_path)
        assert plugrt.default_backend(made) == "cpu"
        (warning,) = caplog.messages
        assert fact in warning
        assert row.cure in warning
        strict = registry(FakePlugin("cpu"), path=tmp_path, PLUGRT_STRICT_PLUGINS="1")
        with pytest.raises(PluginBroken):
            plugrt.default_backend(strict)


def test_missing_metadata_does_not_hide_a_plugin(tmp_path: Path) -> None:
    """importlib_metadata 10.2 fails as a whole on such a folder."""
    install(tmp_path, "bare", {"plugrt.plugins": {"chip": "m:p"}}, metadata=False)
    install_plugin(tmp_path, "good")
    assert [(r.name, r.state) for r in discover([str(tmp_path)]).records] == [
        ("chip", "found"), ("good", "found")
    ]  # fmt: skip


def test_a_plugin_in_a_zip_file(tmp_path: Path) -> None:
    archive = tmp_path / "all.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("z-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: z\nVersion: 1.0\n")
        file.writestr("z-1.0.dist-info/entry_points.txt", "[plugrt.plugins]\nchip = z:p\n")
    record = only(archive)
    assert (record.name, record.distribution, record.version) == ("chip", "z", "1.0")


def test_a_corrupt_zip_file_is_no_crash(tmp_path: Path) -> None:
    archive = tmp_path / "bad.zip"
    archive.write_bytes(b"PK\x03\x04 nonsense")
    install_plugin(tmp_path, "good")
    assert [r.name for r in discover([str(archive), str(tmp_path)]).records] == ["good"]


def test_aliases_and_commands_are_data(tmp_path: Path) -> None:
    install(tmp_path, "d", {"plugrt.aliases": {"accel": "chip"}, "plugrt.cli": {"d": "d:hooks"}})
    found = discover([str(tmp_path)])
    assert found.aliases == {"accel": ("chip",)}
    assert [r.value for r in found.hooks["plugrt.cli"]] == ["d:hooks"]
    assert found.records == []


def test_order_is_the_same_in_every_run(tmp_path: Path) -> None:
    for name in "cadbe":
        install_plugin(tmp_path, name)
    assert [r.name for r in discover([str(tmp_path)]).records] == list("abcde")


def test_an_installed_plugin_is_found_once() -> None:
    records = [r for r in discover().records if r.name == "cpu"]
    assert len(records) <= 1


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("groups", "taken"),
    [
        (["plugrt.plugins", "jax_plugins"], "plugrt.plugins"),
        (["plugrt.plugins", "jax_plugins", "torch_xla.plugins"], "plugrt.plugins"),
        (["jax_plugins", "xla_plugins"], "jax_plugins"),
        (["torch_xla.plugins", "xla_plugins"], "xla_plugins"),
    ],
)
def test_a_package_for_several_programs_is_one_row(
    tmp_path: Path, groups: list[str], taken: str, reverse: bool
) -> None:
    """Earlier, its other entry points were rows of the state duplicate, like a fault."""
    groups = groups[::-1] if reverse else groups
    install(tmp_path, "my-chip", {group: {"chip": f"{group}.chip"} for group in groups})
    assert only(tmp_path).source == taken


def test_packages_that_offer_one_name_in_different_groups_are_two_rows(tmp_path: Path) -> None:
    install_plugin(tmp_path, "chip", distribution="one")
    install_plugin(tmp_path, "chip", distribution="two", group="jax_plugins")
    assert [r.who for r in discover([str(tmp_path)]).records] == ["one 1.0", "two 1.0"]
