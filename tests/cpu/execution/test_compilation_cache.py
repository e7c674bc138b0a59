"""The persistent compilation cache: entries, hits, refused files, and eviction.

Same as JAX: the persistent compilation cache's settings.
"""

from __future__ import annotations

import os
import random
import stat
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import config, monitoring
from plugrt.errors import ConfigError, Internal
from support.distributions import run_python
from support.platforms import platform_environment

X = np.arange(4, dtype=np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "cache"
    with config.override(
        compilation_cache_dir=str(place), persistent_cache_min_compile_time_secs=0.0
    ):
        yield place


@pytest.fixture
def events() -> Iterator[list[str]]:
    heard: list[str] = []

    def listen(event: str, /, **kwargs: Any) -> None:
        if event.startswith("/plugrt/"):  # test_events.py tests JAX's names
            heard.append(event)

    monitoring.register_event_listener(listen)
    yield heard
    monitoring.unregister_event_listener(listen)


def _call(factor: float = 3.0) -> Any:
    """Calls a new function, which no cache in this process has, as in another run."""
    return np.asarray(plugrt.jit(lambda x: x * factor + 1)(X))


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


def test_the_cache_key_does_not_depend_on_the_source_line(folder: Path, events: list[str]) -> None:
    source = "def moved(x):\n    return x - 5\n"
    for lines in ("", "\n" * 40):
        scope: dict[str, Any] = {}
        exec(compile(lines + source, "somewhere.py", "exec"), scope)
        np.testing.assert_array_equal(np.asarray(plugrt.jit(scope["moved"])(X)), X - 5)
    assert events == [monitoring.CACHE_MISS, monitoring.CACHE_HIT]


def test_another_process_finds_it(folder: Path) -> None:
    code = """
import numpy as np, plugrt
from plugrt import monitoring
heard = []
monitoring.register_event_listener(lambda event, /, **_: heard.append(event))
heard_of = lambda: [event for event in heard if event.startswith("/plugrt/")]
print(np.asarray(plugrt.jit(lambda x: x * 9)(np.ones(2, np.float32))).tolist(), heard_of())
"""
    settings = {
        **platform_environment(),
        "JAX_COMPILATION_CACHE_DIR": str(folder),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    for event in (monitoring.CACHE_MISS, monitoring.CACHE_HIT):
        done = run_python(code, **settings)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == f"[9.0, 9.0] ['{event}']"


def test_programs_that_compile_fast_are_not_kept(folder: Path) -> None:
    with config.override(persistent_cache_min_compile_time_secs=100.0):
        _call()
    assert _entries(folder) == []
    # The smallest program is compiled in some 20 ms and loaded in 3: keeping pays from 10 ms on.
    assert type(config).persistent_cache_min_compile_time_secs.default == 0.01


def test_small_entries_can_be_left_out_and_the_cache_turned_off(folder: Path) -> None:
    with config.override(persistent_cache_min_entry_size_bytes=10**9):
        _call(5.0)
    with config.override(enable_compilation_cache=False):
        _call(6.0)
    assert _entries(folder) == []


@pytest.mark.parametrize("damage", [lambda b: b"", lambda b: b[: len(b) // 2], lambda b: b"x" * 99])
def test_a_damaged_entry_is_compiled_again_with_a_warning(folder: Path, damage: Any) -> None:
    _call()
    [entry] = _entries(folder)
    whole = entry.read_bytes()
    entry.write_bytes(damage(whole))
    with pytest.warns(UserWarning, match="cannot be used, and its program is compiled again"):
        np.testing.assert_array_equal(_call(), 3 * X + 1)
    assert len(entry.read_bytes()) > 99, "the entry is written anew"
    entry.write_bytes(damage(whole))
    with config.override(raise_persistent_cache_errors=True), pytest.raises(Internal):
        _call()


def test_a_folder_that_cannot_be_made_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with (
        config.override(
            compilation_cache_dir=str(file), persistent_cache_min_compile_time_secs=0.0
        ),
        pytest.warns(UserWarning, match="persistent compilation cache"),
    ):
        np.testing.assert_array_equal(_call(), 3 * X + 1)


def test_the_least_recently_used_entries_go(folder: Path) -> None:
    _call(1.5)
    [oldest] = _entries(folder)
    room = int(oldest.stat().st_size * 2.5)
    with config.override(compilation_cache_max_size=room):
        _call(2.5)
        _call(3.5)
    kept = _entries(folder)
    assert oldest not in kept
    assert sum(entry.stat().st_size for entry in kept) <= room


def _both(folder: Path) -> tuple[Path, Path]:
    """Returns the entries of two programs, ``_call(3.0)`` and ``_call(4.0)``."""
    _call(3.0)
    [first] = _entries(folder)
    _call(4.0)
    [second] = set(_entries(folder)) - {first}
    return first, second


def test_entries_that_were_swapped_are_not_loaded(folder: Path, events: list[str]) -> None:
    first, second = _both(folder)
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)
    events.clear()
    for factor in (3.0, 4.0):
        with pytest.warns(UserWarning, match="it is an entry of another program"):
            np.testing.assert_array_equal(_call(factor), factor * X + 1)
    assert events == [monitoring.CACHE_MISS] * 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(_call(3.0), 3 * X + 1)  # repaired


def test_no_alteration_of_an_entry_is_loaded(folder: Path) -> None:
    _call()
    [entry] = _entries(folder)
    whole, chance = entry.read_bytes(), random.Random(7)
    for _ in range(40):
        content = bytearray(whole)
        for _ in range(chance.randint(1, 3)):
            at = chance.choice([chance.randrange(len(content)), chance.randrange(1500)])
            action = chance.randrange(3)
            if action == 0:
                content[at] ^= 1 << chance.randrange(8)
            elif action == 1:
                del content[at : at + chance.randint(1, 50)]
            else:
                content[at:at] = chance.randbytes(chance.randint(1, 50))
        entry.write_bytes(content)
        with pytest.warns(UserWarning, match="its program is compiled again"):
            np.testing.assert_array_equal(_call(), 3 * X + 1)


@pytest.mark.parametrize("what", ["folder", "entry"])
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_cache_entries_that_others_can_write_are_not_loaded(
    folder: Path, events: list[str], what: str, mode: int
) -> None:
    _call()
    [entry] = _entries(folder)
    (folder if what == "folder" else entry).chmod(mode)
    events.clear()
    with pytest.warns(UserWarning, match="others can write it") as told:
        np.testing.assert_array_equal(_call(), 3 * X + 1)
    assert len(told) == 1
    assert events == [monitoring.CACHE_MISS]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="users as POSIX has them")
def test_cache_entries_of_another_user_are_not_loaded(
    folder: Path, events: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _call()
    events.clear()
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.warns(UserWarning, match="it belongs to .* and not to"):
        np.testing.assert_array_equal(_call(), 3 * X + 1)
    assert events == [monitoring.CACHE_MISS]


@pytest.mark.parametrize("umask", [0, 0o022, 0o377])
def test_folder_and_entries_are_the_users_alone(folder: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        _call()
    finally:
        os.umask(before)
    [entry] = _entries(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600


def test_a_fifo_in_place_of_an_entry_is_not_waited_for(folder: Path) -> None:
    _call()
    [entry] = _entries(folder)
    entry.unlink()
    os.mkfifo(entry)
    with pytest.warns(UserWarning, match="FIFO"):
        np.testing.assert_array_equal(_call(), 3 * X + 1)
    assert entry.is_file()


@pytest.mark.parametrize("url", ["gs://bucket/cache", "s3://bucket", "hdfs://host/x"])
def test_a_url_is_refused_by_name(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"compilation_cache_dir = .*folders of this machine"):
        config.override(compilation_cache_dir=url).__enter__()
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", url)
    with pytest.raises(ConfigError, match=r"JAX_COMPILATION_CACHE_DIR=.*Fix: name such a folder"):
        _ = type(config)().compilation_cache_dir


def test_a_tilde_is_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with config.override(
        compilation_cache_dir="~/kept", persistent_cache_min_compile_time_secs=0.0
    ):
        _call()
    assert len(_entries(tmp_path / "kept")) == 1
    assert not (tmp_path / "~").exists()


def test_entries_that_another_process_removes_meanwhile_are_no_fault(folder: Path) -> None:
    _call()
    done = threading.Event()

    def remove() -> None:
        while not done.is_set():
            for entry in folder.glob("*-executable"):
                entry.unlink(missing_ok=True)

    other = threading.Thread(target=remove)
    other.start()
    try:
        with warnings.catch_warnings(), config.override(compilation_cache_max_size=1):
            warnings.simplefilter("error")
            for factor in range(12):
                _call(factor + 0.5)
    finally:
        done.set()
        other.join()


def test_a_long_name_in_any_script_has_an_entry(folder: Path, events: list[str]) -> None:
    def named(x: Any) -> Any:
        return x + 11

    named.__name__ = "数" * 80
    for _ in range(2):
        np.testing.assert_array_equal(np.asarray(plugrt.jit(lambda x: named(x))(X)), X + 11)
        np.testing.assert_array_equal(np.asarray(plugrt.jit(named)(X)), X + 11)
    assert monitoring.CACHE_HIT in events
