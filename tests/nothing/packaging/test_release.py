"""What `make release` refuses: distributions that do not belong together, and a wrong tag."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from support.markdown import ROOT, load_script

RELEASE = load_script("tools/release.py")
ALL = ("plugrt", "plugrt-cpu", "plugrt-cuda", "plugrt-tpu", "plugrt-sdk")
CHANGELOG = "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2026-12-01\n"


def distribution(folder: Path, name: str, version: str, *requires: str) -> list[Path]:
    """Makes a wheel and an sdist that hold their metadata only."""
    lines = ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}"]
    text = "\n".join([*lines, *(f"Requires-Dist: {r}" for r in requires)]).encode() + b"\n"
    stem = f"{name.replace('-', '_')}-{version}"
    wheel, sdist = folder / f"{stem}-py3-none-any.whl", folder / f"{stem}.tar.gz"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{stem}.dist-info/METADATA", text)
    with tarfile.open(sdist, "w:gz") as archive_of_sources:
        for file in (f"{stem}/PKG-INFO", f"{stem}/src/{stem}.egg-info/PKG-INFO"):
            entry = tarfile.TarInfo(file)
            entry.size = len(text)
            archive_of_sources.addfile(entry, io.BytesIO(text))
    return [wheel, sdist]


def release(folder: Path, **requires: str) -> list[Path]:
    """Makes all distributions in version 0.2.0; each but plugrt requires it, by default bounded."""
    made = distribution(folder, "plugrt", "0.2.0", "numpy>=2")
    for name in ALL[1:]:
        needed = requires.get(name.removeprefix("plugrt-"), "plugrt>=0.2.0,<0.3")
        made += distribution(folder, name, "0.2.0", needed)
    return made


def test_a_release_that_fits_together(tmp_path: Path) -> None:
    assert list(RELEASE.faults(release(tmp_path), "0.2.0")) == []


@pytest.mark.parametrize(
    ("requirement", "says"),
    [
        ("plugrt", "no bound from 0.2.0 on"),
        ("plugrt>=0.1.0,<0.3", "no bound from 0.2.0 on"),
        ("plugrt>=0.2.0", "no upper bound"),
        ('plugrt>=0.2.0 ; python_version < "4"', "no upper bound"),
    ],
)
def test_a_requirement_without_bounds(tmp_path: Path, requirement: str, says: str) -> None:
    found = list(RELEASE.faults(release(tmp_path, cuda=requirement), "0.2.0"))
    assert found
    assert all("plugrt_cuda" in fault for fault in found)
    assert any(says in fault for fault in found)


def test_a_distribution_that_is_missing_or_of_another_version(tmp_path: Path) -> None:
    made = release(tmp_path)
    [missing] = RELEASE.faults(made[:-1], "0.2.0")
    assert "plugrt-sdk has ['whl']" in missing
    assert any("5 distributions" in f for f in RELEASE.faults(made[:-2], "0.2.0"))
    assert sum("0.2.0, not 0.2.1" in f for f in RELEASE.faults(made, "0.2.1")) == len(made)


def test_a_tag_is_the_version_and_has_a_section() -> None:
    RELEASE.check_tag("v0.2.0", "0.2.0", CHANGELOG)
    with pytest.raises(SystemExit, match=r"pyproject\.toml states 0\.2\.1"):
        RELEASE.check_tag("v0.2.0", "0.2.1", CHANGELOG)
    with pytest.raises(SystemExit, match="no section"):
        RELEASE.check_tag("v0.2", "0.2", CHANGELOG)


def test_it_builds_every_project() -> None:
    files = [*ROOT.glob("*/pyproject.toml"), *ROOT.glob("plugins/*/pyproject.toml")]
    assert set(RELEASE.PROJECTS) == {f.parent.relative_to(ROOT).as_posix() for f in files}
