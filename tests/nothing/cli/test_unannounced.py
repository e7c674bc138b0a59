"""PJRT libraries in installed packages that no entry point announces: a row in doctor."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.clib import compile_c, needs_cc, tiny_library
from support.distributions import install, install_plugin, run_cli, run_warm

pytestmark = needs_cc
VARIABLE = "PJRT_NAMES_AND_LIBRARY_PATHS"


def package(site: Path, name: str, library: Path, file: str, group: str = "") -> Path:
    """Installs a package with one library; returns the library's path."""
    points = {group: {name: f"{name}_module"}} if group else {}
    info = install(site, name, points, {f"{name}_module": ""})
    shutil.copy(library, site / file)
    (info / "RECORD").write_text(f"{file},,\n")
    return site / file


def rows_of(site: Path, started: str = "made", **environ: str) -> dict[str, dict[str, Any]]:
    """Returns doctor's rows. Doctor starts one plugin, by default a cheap one."""
    install_plugin(site, "made")
    done = run_cli("doctor", "--json", folders=(site,), JAX_PLATFORMS=started, **environ)
    rows = json.loads(done.stdout)["candidates"]
    return {row["distribution"] or row["name"]: row for row in rows}


def test_the_row_names_the_line_that_loads_it(tmp_path: Path) -> None:
    """Earlier, lammps-jax-pjrt-cpu and fastatomstruct-xla-cpu were not mentioned."""
    site = tmp_path / "site"
    site.mkdir()
    library = tiny_library(tmp_path)
    path = package(site, "silent", library, "libchip_pjrt.so")
    package(site, "spoken", library, "other.so", "xla_plugins")
    package(site, "unrelated", compile_c(tmp_path, "int f(void) { return 0; }"), "libf.so")
    package(site, "user", compile_c(tmp_path, 'const char *s = "GetPjrtApi";'), "libuser.so")
    rows = rows_of(site)
    row = rows["silent"]
    assert (row["name"], row["state"], row["library"]) == ("chip", "not announced", str(path))
    assert row["cure"] == f"{VARIABLE}=chip:{path} loads it"
    assert rows["spoken"]["state"] != "not announced"
    assert {"unrelated", "user"}.isdisjoint(rows)


@pytest.mark.parametrize("how", ["by its path", "by a link", "another"])
def test_a_library_that_the_variable_names_has_no_second_row(tmp_path: Path, how: str) -> None:
    library = tiny_library(tmp_path)
    path = package(tmp_path, "silent", library, "libchip_pjrt.so")
    link = tmp_path / "link.so"
    link.symlink_to(path)
    value = {
        "by its path": f"chip:{path}",
        "by a link": f"chip:{link}",
        "another": f"mine:{library}",
    }
    rows = rows_of(tmp_path, value[how].partition(":")[0], **{VARIABLE: value[how]})
    if how == "another":
        assert rows["silent"]["cure"] == f"{VARIABLE}={value[how]},chip:{path} loads it"
    else:
        assert "silent" not in rows
        assert rows["chip"]["state"] == "initialised"


def test_the_line_hides_no_plugin_and_no_other_line(tmp_path: Path) -> None:
    """Earlier, fastatomstruct-xla-cpu's line named the cpu plugin's library, libpjrt_cpu.so."""
    pytest.importorskip("plugrt_cpu")
    library = tiny_library(tmp_path)
    paths = {name: package(tmp_path, name, library, file) for name, file in (
        ("fast.One", "libpjrt_cpu.so"), ("two", "libchip_pjrt.so"), ("three", "chip.so"),
    )}  # fmt: skip
    rows = rows_of(tmp_path)
    assert [rows[name]["name"] for name in paths] == ["fast_one", "two", "chip"]
    assert rows["fast.One"]["cure"] == f"{VARIABLE}=fast_one:{paths['fast.One']} loads it"
    assert not rows["two"]["jax"]["found"], "it was said that the variable names it"


def test_a_library_of_an_installed_plugin_is_announced(tmp_path: Path) -> None:
    """The package libtpu has no entry point, but plugrt-tpu loads its library."""
    pytest.importorskip("plugrt_tpu")
    package(tmp_path, "libtpu", tiny_library(tmp_path), "libtpu.so")
    assert "libtpu" not in rows_of(tmp_path)


def test_a_list_of_files_that_cannot_be_read_costs_doctor_no_row(tmp_path: Path) -> None:
    """Earlier, one such package made doctor print an error in place of its table."""
    library = tiny_library(tmp_path)
    place = package(tmp_path, "zz", library, "libpjrt_zz.so")
    for name, record in (("quoted", '"' + "a" * 200_000), ("long", "a" * 5000 + ".so,,\n")):
        (install(tmp_path, name, {}, {}) / "RECORD").write_text(record)
    (install(tmp_path, "folder", {}, {}) / "RECORD").mkdir()
    assert any(str(place) in json.dumps(row) for row in rows_of(tmp_path).values())


OPENS = """
import os, sys
opened = []
sys.addaudithook(lambda event, args: event == "open" and opened.append(str(args[0])))
import plugrt
try:
    {use}
except (SystemExit, plugrt.errors.PlugrtError):
    pass
print(sorted({{os.path.basename(path) for path in opened if path.startswith(sys.argv[1])}}))
"""


@pytest.mark.parametrize("platforms", ["made", "nosuch", ""])
def test_devices_reads_nothing_of_such_a_package_but_its_entry_points(
    tmp_path: Path, platforms: str
) -> None:
    """Only doctor reads the package's list of files and its library."""
    package(tmp_path, "silent", tiny_library(tmp_path), "libchip_pjrt.so")
    env = {"JAX_PLATFORMS": platforms} if platforms else {}
    install_plugin(tmp_path, "made", priority=900)

    def opened(use: str) -> set[str]:
        done = run_warm(OPENS.format(use=use), tmp_path, arguments=(str(tmp_path),), **env)
        return {*ast.literal_eval(done.stdout.splitlines()[-1])}

    searched = {"RECORD", "libchip_pjrt.so"}
    assert opened("plugrt.devices()") & searched == set()
    if platforms == "made":
        assert opened("from plugrt.cli import main; main(['doctor'])") >= searched
