"""`download_wheel`: only a wheel for another Python or platform skips a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.installed import download_wheel

ALL = "chip_a-1.0-py3-none-any.whl"
"""A file for each Python and platform."""


def index(folder: Path, *files: str, python: str = "") -> str:
    """Makes an index of these files of the package, which require that Python."""
    page = folder / "simple/chip-a/index.html"
    page.parent.mkdir(parents=True)
    for file in files:
        (page.parent / file).touch()
    page.write_text(
        "".join(f'<a href="{f}" data-requires-python="{python}">{f}</a><br>' for f in files)
    )
    return f"--index-url={(folder / 'simple').as_uri()}"


@pytest.mark.parametrize(
    ("name", "files", "python"),
    [
        ("Chip_a", ("chip_a-1.0-cp27-cp27m-win32.whl", "chip_a-2.0-py3-none-any.whl"), ""),
        ("chip-a", (ALL,), "&gt;=3.99"),
    ],
)
def test_a_wheel_for_another_machine_skips(
    tmp_path: Path, name: str, files: tuple[str, ...], python: str
) -> None:
    with pytest.raises(pytest.skip.Exception, match=r"==1\.0 is not there for this machine"):
        download_wheel(
            name, "1.0", tmp_path / "to", "--isolated", index(tmp_path, *files, python=python)
        )


@pytest.mark.parametrize("files", [("chip_a-2.0-cp27-cp27m-win32.whl",), (), (ALL,)])
def test_whatever_else_fails_is_a_failure(tmp_path: Path, files: tuple[str, ...]) -> None:
    """Another version, an empty index, a damaged wheel: each was a skip."""
    place = index(tmp_path, *files)
    with pytest.raises(AssertionError, match=r"chip-a==1\.0 could not be downloaded"):
        download_wheel("chip-a", "1.0", tmp_path / "to", "--isolated", place)


def test_an_index_that_cannot_be_reached_is_a_failure(tmp_path: Path) -> None:
    nowhere = ("--index-url=http://127.0.0.1:9/simple", "--retries=0", "--timeout=1")
    with pytest.raises(AssertionError, match=r"chip-a==1\.0 could not be downloaded"):
        download_wheel("chip-a", "1.0", tmp_path, "--isolated", *nowhere)
