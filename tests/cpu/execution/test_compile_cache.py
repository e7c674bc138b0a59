"""The persistent compilation cache: what is kept, found again, refused, and let go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import monitoring
from plugrt.config import config
from plugrt.errors import Internal
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
        heard.append(event)

    monitoring.register_event_listener(listen)
    yield heard
    monitoring.unregister_event_listener(listen)


def _call(factor: float = 3.0) -> Any:
    """A function made anew, as in another run: no cache in this process knows it."""
    return np.asarray(plugrt.jit(lambda x: x * factor + 1)(X))


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


def test_a_program_is_compiled_once_and_loaded_after_that(folder: Path, events: list[str]) -> None:
    first = _call()
    [entry] = _entries(folder)
    assert events == [monitoring.CACHE_MISS]
    again = _call()
    assert events == [monitoring.CACHE_MISS, monitoring.CACHE_HIT]
    assert _entries(folder) == [entry]
    np.testing.assert_array_equal(first, 3 * X + 1)
    np.testing.assert_array_equal(again, first)


def test_another_program_has_another_entry(folder: Path, events: list[str]) -> None:
    _call(3.0)
    np.testing.assert_array_equal(_call(4.0), 4 * X + 1)
    assert events == [monitoring.CACHE_MISS] * 2
    assert len(_entries(folder)) == 2


def test_where_the_function_stands_does_not_matter(folder: Path, events: list[str]) -> None:
    source = "def moved(x):\n    return x - 5\n"
    for lines in ("", "\n" * 40):
        scope: dict[str, Any] = {}
        exec(compile(lines + source, "somewhere.py", "exec"), scope)
        np.testing.assert_array_equal(np.asarray(plugrt.jit(scope["moved"])(X)), X - 5)
    assert events == [monitoring.CACHE_MISS, monitoring.CACHE_HIT]


def test_another_device_has_another_entry(folder: Path, events: list[str]) -> None:
    for device in plugrt.devices()[:2]:
        result = plugrt.jit(lambda x: x + 7)(plugrt.device_put(X, device))
        assert result.device is device
        np.testing.assert_array_equal(np.asarray(result), X + 7)
    assert events == [monitoring.CACHE_MISS] * 2


def test_another_process_finds_it(folder: Path) -> None:
    code = """
import numpy as np, plugrt
from plugrt import monitoring
heard = []
monitoring.register_event_listener(lambda event, /, **_: heard.append(event))
print(np.asarray(plugrt.jit(lambda x: x * 9)(np.ones(2, np.float32))).tolist(), heard)
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


def test_programs_that_compile_fast_are_not_kept_by_default(tmp_path: Path) -> None:
    with config.override(compilation_cache_dir=str(tmp_path / "cache")):
        _call()
    assert _entries(tmp_path / "cache") == []


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
