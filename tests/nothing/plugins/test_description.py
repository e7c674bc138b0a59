"""Facts about a plugin from its package's files: names, owner, library, machine, hardware."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import plugrt
from plugrt.capi import ProbeResult
from plugrt.errors import Internal, PluginIncompatible, PluginUnavailable, Unimplemented
from plugrt.plugins import Backends, LibraryPlugin, vendors
from plugrt.plugins.starting.loading import load
from support.clib import compile_c, needs_cc
from support.distributions import install
from support.fake_client import FakePlugin
from support.registries import registry

MUST_NOT_RUN = "raise RuntimeError('must not run')"
EXPORTS = "void* GetPjrtApi(void) { return 0; }"
WINDOWS = b"MZ\x90 GetPjrtApi "
MACHINE = 18
"""The offset of an ELF file's machine; 2 bytes."""


def made_for_jax(site: Path, source: str, files: dict[str, bytes], name: str = "chip") -> Backends:
    """Installs a plugin made for JAX with these files."""
    module = f"m_{name}"
    info = install(site, f"{name}-pjrt", {"jax_plugins": {name: module}}, {module: source})
    for file, content in files.items():
        (site / file).write_bytes(content)
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    return registry(path=site)


def namespace_module(site: Path, path: str, *distributions: str, quoted: bool = False) -> None:
    """Makes a module of a namespace package, and distributions that each list a file of it."""
    (site / path).parent.mkdir(parents=True, exist_ok=True)
    (site / path).write_text(MUST_NOT_RUN)
    for name in distributions:
        info = install(site, name, {}, version="0.7.0")
        line = f'"{path}",,\n' if quoted else f"{path},sha256=x,12\n"
        (info / "RECORD").write_text(f"{name}/__init__.py,,\n{line}")


@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("group", ["jax_plugins", "xla_plugins"])
@pytest.mark.parametrize("path", ["intel.py", "intel/__init__.py"])
def test_a_module_of_a_namespace_package_has_the_distribution_that_lists_it(
    site: Path, group: str, path: str, quoted: bool
) -> None:
    """Earlier, the row of intel-extension-for-openxla had no distribution and no version."""
    namespace_module(site, f"{group}/{path}", "intel-for-xla", quoted=quoted)
    namespace_module(site, f"{group}/intel2.py", "other")
    rows = {row.name: row for row in registry(path=site).table.rows}
    assert {name: row.who for name, row in rows.items()} == {
        "intel": "intel-for-xla 0.7.0", "intel2": "other 0.7.0"
    }  # fmt: skip
    assert (rows["intel"].value, str(rows["intel"].source)) == (f"{group}.intel", group)
    blocked = registry(path=site, PLUGRT_PLUGINS_BLOCK="intel-for-xla")
    assert [row.blocked for row in blocked.table.rows] == [True, False]
    assert blocked.table.find("intel2@other", "the test")


def test_its_name_and_its_library_are_found_as_with_an_entry_point(site: Path) -> None:
    namespace_module(site, "jax_plugins/intel/__init__.py", "intel-for-xla")
    (site / "jax_plugins/intel/__init__.py").write_text("xb.register_plugin('sycl')")
    (site / "lib.so").write_bytes(b"")
    with next(site.glob("*.dist-info")).joinpath("RECORD").open("a") as record:
        record.write("lib.so,,\n")
    made = registry(path=site)
    (row,) = made.table.find("sycl", "the test")
    assert (row.name, row.description.library) == ("intel", str(site / "lib.so"))
    assert row.as_dict()["platform"] == "sycl"


def test_a_module_that_no_distribution_lists_has_none(site: Path) -> None:
    namespace_module(site, "jax_plugins/own.py")
    install(site, "other", {})
    (row,) = registry(path=site).table.rows
    assert (row.distribution, row.who) == ("", "module jax_plugins.own")


@pytest.fixture(params=["with jax", "without"])
def jax(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    there = None if request.param == "without" else json  # any module with a ``__spec__``
    monkeypatch.setitem(sys.modules, "jax", there)


def other_machine(site: Path) -> bytes:
    content = bytearray(compile_c(site, EXPORTS).read_bytes())
    content[MACHINE : MACHINE + 2] = (0xF3).to_bytes(2, "little")
    return bytes(content)


@needs_cc
@pytest.mark.usefixtures("jax")
@pytest.mark.parametrize("system", ["Windows", "riscv"])
def test_a_library_for_another_system_is_refused_before_code_runs(
    site: Path, tmp_path_factory: pytest.TempPathFactory, system: str
) -> None:
    """jax-qnn's is for Windows: earlier, with jax its row stated that it registered no backend."""
    file = {"pjrt_chip.dll": WINDOWS}
    if system == "riscv":
        file = {"pjrt_chip.so": other_machine(tmp_path_factory.mktemp("built"))}
    made = made_for_jax(site, MUST_NOT_RUN, file)
    with pytest.raises(PluginIncompatible, match=rf"pjrt_chip.* {system}"):
        load(made.table.rows[0], made.table)
    assert made.table.rows[0].state == "incompatible"


@needs_cc
@pytest.mark.parametrize("count", [1, 2])
def test_the_library_for_this_system_is_found_among_several(
    site: Path, tmp_path_factory: pytest.TempPathFactory, count: int
) -> None:
    elsewhere = tmp_path_factory.mktemp("built")
    here = compile_c(elsewhere, EXPORTS).read_bytes()
    files = {"a.dll": WINDOWS, "a_riscv.so": other_machine(elsewhere)}
    made = made_for_jax(site, "", {**files, **{f"here{i}.so": here for i in range(count)}})
    described = made.table.rows[0].description
    assert described.library == (str(site / "here0.so") if count == 1 else "")
    assert count == 1 or "has several libraries" in described.explain_no_library()


@pytest.mark.parametrize("card", [False, True])
@pytest.mark.parametrize("ours", [False, True])
@pytest.mark.parametrize("platform", ["tt", "rocm", "oneapi", "unheard_of"])
@pytest.mark.parametrize("fault", [None, Internal("no chips"), Unimplemented("no"), SystemExit(1)])
def test_a_library_that_fails_without_a_device_is_unavailable(
    site: Path, show_hardware: Any, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture, platform: str, ours: bool, card: bool,
    fault: BaseException | None,
) -> None:  # fmt: skip
    """Earlier, jax-tt-plugin was broken, with a warning, on machines without a Tenstorrent card."""
    (site / "lib.so").write_bytes(b"no library")
    source = f"def initialize(): xb.register_plugin({platform!r})"
    made = made_for_jax(site, source, {"lib.so": b"no library"})
    if ours:
        made = registry(LibraryPlugin(platform, str(site / "lib.so")))
    made.register(FakePlugin("cpu", priority=-1))
    kinds = vendors.find_hardware([platform], ())
    assert bool(kinds) == (platform != "unheard_of")
    show_hardware(kinds if card else [])
    if fault is not None:
        monkeypatch.setattr(LibraryPlugin, "create_client", Mock(side_effect=fault))
        monkeypatch.setattr(LibraryPlugin, "try_in_child", lambda *_, **__: ProbeResult("ok"))
    with pytest.raises(PluginUnavailable, match=str(fault) if fault else "not a shared library"):
        plugrt.devices(of=made)
    (row,) = [row for row in made.table.rows if row.name != "cpu"]
    absent = bool(kinds) and not card and not ours
    assert row.state == ("unavailable" if absent else "broken")
    assert ("this machine shows no sign of" in row.reason) == absent
    assert any("left out" in message for message in caplog.messages) != absent


def test_install_commands_name_the_extras_of_plugrt() -> None:
    cuda = 'pip install "plugrt[cuda12]" (or "plugrt[cuda13]")'
    assert [vendors.install(n) for n in ("cuda", "gpu")] == [cuda, cuda]
    assert [vendors.install(n) for n in ("cpu", "tpu")] == [
        'pip install "plugrt[cpu]"', 'pip install "plugrt[tpu]"'
    ]  # fmt: skip
    for name in ("rocm", "tt", "mychip", "c.u"):
        assert vendors.install(name) == f"install a plugin that provides {name!r}"
    assert vendors.find_extra("cpu", "not-installed") == ""
