"""Checks of installed packages: the kit accepts valid ones, and reports the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugrt_sdk.conformance.installed_checks import installed_chapters
from support.distributions import install
from support.registries import registry

CHECKS = """
    from plugrt.plugins import hookimpl
    from plugrt_sdk.conformance import Chapter, Level

    CHAPTER = Chapter("mychip", Level.BUFFERS, "the maker's manual")

    @CHAPTER.check("named", why="the manual says so")
    def named(subject):
        '''The plugin has a name.'''

    @hookimpl
    def plugrt_conformance_checks():
        return [CHAPTER]
"""


def ids(site: Path, source: str, name: str, copies: int = 1) -> list[str]:
    for i in range(copies):
        module = f"checks_{name}_{i}"
        install(site, f"c{i}-dist", {"plugrt.conformance": {name: module}}, {module: source})
    table = registry(path=site).table
    return [c.id for chapter in installed_chapters({"buffers"}, table) for c in chapter]


def test_two_packages_of_one_name(site: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert ids(site, CHECKS, "mychip", copies=2) == ["mychip.named"]
    assert "of c1-dist 1.0 are left out: ids that begin with 'mychip' are those of c0-dist 1.0" in (
        caplog.text
    )


@pytest.mark.parametrize(
    ("name", "change", "fact"),
    [
        ("buffers", ("", ""), "'buffers' are those of the kit"),
        ("other", ("", ""), "begin with 'mychip'; they begin with the name of the entry point"),
        ("mychip", ("[CHAPTER]", "CHAPTER"), "no list of Chapter"),
        ("mychip", ("[CHAPTER]", "[3]"), "gives 3, which is no plugrt_sdk.conformance.Chapter"),
        ("mychip", ("[CHAPTER]", "[CHAPTER, CHAPTER]"), "two of its checks have the id mychip.nam"),
        ("mychip", ("[CHAPTER]", "[]"), "gives no check"),
        ("mychip", ("The plugin has a name.", ""), "mychip.named has no title"),
        ("mychip", ("why=", "capability='zero_copy', why="), "the capability 'zero_copy', which"),
    ],
)
def test_wrong_chapters_are_left_out_with_a_warning(
    site: Path, caplog: pytest.LogCaptureFixture, name: str, change: tuple[str, str], fact: str
) -> None:
    assert ids(site, CHECKS.replace(*change) if change[0] else CHECKS, name) == []
    assert "the conformance checks of c0-dist 1.0 are left out: " in caplog.text
    assert fact in caplog.text
