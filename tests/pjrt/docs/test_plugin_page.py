"""docs/plugins.md: its package, installed as described, over a real library."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path

import pytest

from support.distributions import install, run_cli, run_warm
from support.markdown import ROOT, blocks
from support.xla_cpu import library_path

LIBRARY = library_path()
PAGE = ROOT / "docs/plugins.md"
pytestmark = pytest.mark.skipif(LIBRARY is None, reason="needs the wheel xla-cpu-pjrt")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The files of the page in a folder, and the result of pip for its pyproject.toml."""
    project = tomllib.loads(blocks(PAGE, "toml")[0].text)["project"]
    for block in blocks(PAGE, "py"):
        name = block.text.splitlines()[0].removeprefix("# ")
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(block.text)
    assert LIBRARY is not None
    (tmp_path / "mychip/libmychip_pjrt.so").symlink_to(LIBRARY)
    install(tmp_path, project["name"], project["entry-points"], version=project["version"])
    return tmp_path


def test_doctor_has_the_row_that_the_page_shows(site: Path) -> None:
    done = run_cli("doctor", folders=(site,), COLUMNS="160")  # xdist's workers have 80
    [row] = blocks(PAGE, "text")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for expected in row.text.splitlines():
        begin = " ".join(expected.partition("…")[0].split())
        assert any(line.startswith(begin) for line in lines), done.stdout + done.stderr


@pytest.mark.parametrize("name", ["mychip", "accelerator"])
def test_the_test_of_the_page_passes(site: Path, name: str) -> None:
    code = "from tests.test_mychip import test_it_computes; test_it_computes(); print('passed')"
    done = run_warm(code, site, JAX_PLATFORMS=name, PLUGRT_STRICT_PLUGINS="1")
    assert done.stdout == "passed\n", done.stderr


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs jax")
def test_jax_finds_the_same_wheel(site: Path) -> None:
    done = run_warm("import jax; print(jax.devices())", site, JAX_PLATFORMS="mychip")
    assert "id=0" in done.stdout, done.stderr


def test_a_library_that_is_not_there_is_told_as_the_page_says(site: Path) -> None:
    (site / "mychip/libmychip_pjrt.so").unlink()
    done = run_warm("import plugrt; print(plugrt.default_backend())", site)
    assert done.stdout == "cpu\n"
    assert "mychip" in done.stderr
    assert "libmychip_pjrt.so does not exist" in done.stderr
    asked = run_warm("import plugrt; plugrt.devices()", site, JAX_PLATFORMS="mychip")
    assert "PluginBroken" in asked.stderr
