"""What is remembered of libraries that were tried apart."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugrt.config import config
from plugrt.plugins import verdicts


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "lib.so"
    path.write_bytes(b"one")
    with config.override(cache_dir=str(tmp_path / "cache")):
        yield path


def test_a_library_is_good_once_it_was_tried(library: Path) -> None:
    assert not verdicts.is_known_good(str(library), {})
    verdicts.remember_good(str(library), {})
    assert verdicts.is_known_good(str(library), {})


def test_other_options_and_another_file_are_another_matter(library: Path) -> None:
    verdicts.remember_good(str(library), {"n": 1})
    assert not verdicts.is_known_good(str(library), {"n": 2})
    assert not verdicts.is_known_good(str(library), {})
    library.write_bytes(b"other")
    assert not verdicts.is_known_good(str(library), {"n": 1})


def test_a_link_is_the_file_that_it_leads_to(library: Path) -> None:
    link = library.with_name("link.so")
    link.symlink_to(library)
    verdicts.remember_good(str(link), {})
    assert verdicts.is_known_good(str(library), {})


def test_a_missing_library_is_not_good(library: Path) -> None:
    library.unlink()
    assert not verdicts.is_known_good(str(library), {})
    verdicts.remember_good(str(library), {})  # nothing to remember, and no harm


@pytest.mark.parametrize("content", ["", "{", '{"a": 1}', "[1, 2]"])
def test_a_broken_memory_is_an_empty_one(library: Path, content: str) -> None:
    place = verdicts.cache_folder() / "good-libraries.json"
    place.parent.mkdir(parents=True)
    place.write_text(content)
    assert not verdicts.is_known_good(str(library), {})
    verdicts.remember_good(str(library), {})
    assert verdicts.is_known_good(str(library), {})


def test_a_folder_that_cannot_be_made_is_no_fault(library: Path) -> None:
    with config.override(cache_dir=str(library / "under-a-file")):
        verdicts.remember_good(str(library), {})
        assert not verdicts.is_known_good(str(library), {})


def test_without_the_setting_it_is_the_users_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    with config.override(cache_dir=None):
        monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
        assert verdicts.cache_folder() == Path("/somewhere/plugrt")
        monkeypatch.delenv("XDG_CACHE_HOME")
        assert verdicts.cache_folder() == Path.home() / ".cache/plugrt"


def test_the_memory_is_bounded(library: Path) -> None:
    for i in range(300):
        os.utime(library, ns=(i, i))
        verdicts.remember_good(str(library), {})
    assert len(verdicts._read()) == 256
    assert verdicts.is_known_good(str(library), {})
