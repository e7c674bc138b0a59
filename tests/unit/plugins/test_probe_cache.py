"""The cached results of libraries that were tried in children.

Differs from JAX: an unknown PJRT library | opened in the process | tried in a child process first.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plugrt import config
from plugrt.plugins.starting import probe_cache


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "lib.so"
    path.write_bytes(b"one")
    with config.override(cache_dir=str(tmp_path / "cache")):
        yield path


def test_a_library_is_good_once_it_was_tried(library: Path) -> None:
    assert not probe_cache.is_known_good(str(library), {})
    probe_cache.record_good(str(library), {})
    assert probe_cache.is_known_good(str(library), {})


def test_other_options_and_another_file_are_another_matter(library: Path) -> None:
    probe_cache.record_good(str(library), {"n": 1})
    assert not probe_cache.is_known_good(str(library), {"n": 2})
    assert not probe_cache.is_known_good(str(library), {})
    library.write_bytes(b"other")
    assert not probe_cache.is_known_good(str(library), {"n": 1})


def test_another_limit_of_the_address_space_is_another_matter(library: Path) -> None:
    resource = pytest.importorskip("resource")
    probe_cache.record_good(str(library), {})
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 46, before[1]))  # more than any user needs
    try:
        assert not probe_cache.is_known_good(str(library), {})
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert probe_cache.is_known_good(str(library), {})


def test_a_link_is_the_file_that_it_leads_to(library: Path) -> None:
    link = library.with_name("link.so")
    link.symlink_to(library)
    probe_cache.record_good(str(link), {})
    assert probe_cache.is_known_good(str(library), {})


def test_a_missing_library_is_not_good(library: Path) -> None:
    library.unlink()
    assert not probe_cache.is_known_good(str(library), {})
    probe_cache.record_good(str(library), {})  # nothing to cache, and no harm


@pytest.mark.parametrize("content", ["", "{", '{"a": 1}', "[1, 2]"])
def test_a_broken_memory_is_an_empty_one(library: Path, content: str) -> None:
    place = Path(probe_cache.cache_folder(), "trials.json")
    place.parent.mkdir(mode=0o700)
    place.write_text(content)
    place.chmod(0o600)
    assert not probe_cache.is_known_good(str(library), {})
    probe_cache.record_good(str(library), {})
    assert probe_cache.is_known_good(str(library), {})


def test_a_folder_that_cannot_be_made_is_no_fault(library: Path) -> None:
    with config.override(cache_dir=str(library / "under-a-file")):
        probe_cache.record_good(str(library), {})
        assert not probe_cache.is_known_good(str(library), {})


def test_without_the_setting_it_is_the_users_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    with config.override(cache_dir=None):
        monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
        assert probe_cache.cache_folder() == "/somewhere/plugrt"
        monkeypatch.delenv("XDG_CACHE_HOME")
        assert probe_cache.cache_folder() == str(Path.home() / ".cache/plugrt")


def test_the_memory_is_bounded(library: Path) -> None:
    for i in range(300):
        os.utime(library, ns=(i, i))
        probe_cache.record_good(str(library), {})
    assert len(probe_cache._entries()) == 256
    assert probe_cache.is_known_good(str(library), {})


def sick_folder(cache: Path) -> None:
    cache.chmod(0o777)


def sick_file(cache: Path) -> None:
    (cache / "trials.json").chmod(0o666)


def of_another_user(cache: Path) -> None:
    os.chown(cache / "trials.json", 54321, -1)


def folder_of_another_user(cache: Path) -> None:
    os.chown(cache, 54321, -1)


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


@pytest.mark.parametrize(
    "spoil",
    [
        sick_folder,
        sick_file,
        pytest.param(of_another_user, marks=AS_ROOT),
        pytest.param(folder_of_another_user, marks=AS_ROOT),
    ],
)
def test_a_memory_that_others_could_have_written_counts_for_nothing(
    library: Path, spoil: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    probe_cache.record_good(str(library), {})
    cache = Path(probe_cache.cache_folder())
    spoil(cache)
    for _ in range(3):
        assert not probe_cache.is_known_good(str(library), {})
    (message,) = [r.getMessage() for r in caplog.records]
    assert str(cache) in message
    assert "54321" in message or "others can write it" in message


@pytest.mark.parametrize("umask", [0, 0o002, 0o022, 0o277])
def test_the_folder_is_private_whatever_the_umask(library: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        probe_cache.record_good(str(library), {})
    finally:
        os.umask(before)
    assert probe_cache.is_known_good(str(library), {})
    cache = Path(probe_cache.cache_folder())
    assert cache.stat().st_mode & 0o777 == 0o700
    assert (cache / "trials.json").stat().st_mode & 0o777 == 0o600
