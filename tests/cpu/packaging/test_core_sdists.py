"""pip alone builds the distributions with C extensions, from the tree and from their sdists."""

from __future__ import annotations

import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from support.apart import runs_apart
from support.clib import needs_cc
from support.installed import RELEASE, folder_of_packages, run

pytestmark = [needs_cc, runs_apart("packages"), pytest.mark.timeout(900)]
ROOT = Path(__file__).parents[3]
PROJECTS = {"runtime": "plugrt", "plugin_sdk": "plugrt-sdk"}
TOOLS = ("pip*", "setuptools*", "_distutils_hack")
MAKE_SDIST = "import setuptools.build_meta as b, sys; b.build_sdist(sys.argv[1])"


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the Python of an environment with pip and setuptools, and without plugrt."""
    place = tmp_path_factory.mktemp("bare") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", place)
    python = place / "bin/python"
    packages = folder_of_packages(python)
    here = folder_of_packages(Path(sys.executable))
    for found in [path for pattern in TOOLS for path in here.glob(pattern)]:
        (packages / found.name).symlink_to(found)
    run(python, "-c", "import plugrt", code=1)
    return python


def copy_tree(folder: Path) -> None:
    """Copies git's files of both projects, with their links."""
    for name in [name for project in PROJECTS for name in RELEASE.sources_of(project)]:
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy, follow_symlinks=False)


def build_wheel(python: Path, source: Path, out: Path) -> list[str]:
    """Builds a wheel by pip, offline, and returns the names of the files in it."""
    options = ("--no-index", "--no-build-isolation", "--no-deps", "--disable-pip-version-check")
    run(python, "-m", "pip", "wheel", "--quiet", *options, "--wheel-dir", out, source, cwd=out)
    [wheel] = out.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return sorted(archive.namelist())


@pytest.mark.parametrize("project", PROJECTS)
def test_pip_builds_the_tree_and_the_sdist_alike_without_plugrt(
    bare_python: Path, project: str, tmp_path: Path
) -> None:
    copy_tree(tmp_path)
    for name in ("from_tree", "from_sdist", "sdist"):
        (tmp_path / name).mkdir()
    run(bare_python, "-c", MAKE_SDIST, tmp_path / "sdist", cwd=tmp_path / project)
    [sdist] = (tmp_path / "sdist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        members = {m.name.partition("/")[2]: m for m in archive.getmembers()}
        header = archive.extractfile(members["core/pjrt.h"])
        assert header is not None
        assert header.read() == (ROOT / "runtime/core/pjrt.h").read_bytes()
        assert all(member.isfile() or member.isdir() for member in members.values()), "no links"
    assert {"core_build.py", "core/generate.py"} <= set(members)

    there = build_wheel(bare_python, tmp_path / project, tmp_path / "from_tree")
    parts = {f"{part}.abi3.so" for part in RELEASE.IN_C[PROJECTS[project]]}
    assert parts == {name for name in there if name.endswith(".so")}
    for other in PROJECTS:  # the sdist needs no other files
        shutil.rmtree(tmp_path / other)
    assert build_wheel(bare_python, sdist, tmp_path / "from_sdist") == there
