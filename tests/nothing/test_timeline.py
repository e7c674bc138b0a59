"""`monitoring.timeline`: writes the events in a block to a file of Chrome's trace events."""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from plugrt import config, monitoring
from plugrt.base import files
from plugrt.errors import ArgumentError, FileRefused


def events(path: Path) -> list[dict[str, Any]]:
    """Returns the events of a file, without those that name process and threads."""
    content = json.loads(path.read_text())
    assert all(e["name"] in ("process_name", "thread_name") for e in content["traceEvents"]
               if e["ph"] == "M")  # fmt: skip
    return [e for e in content["traceEvents"] if e["ph"] != "M"]


def names(path: Path) -> list[str]:
    return [e["name"] for e in events(path)]


def test_durations_and_events_have_times_threads_and_details(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    before = time.perf_counter()
    with monitoring.timeline(path):
        monitoring.record_event(monitoring.CACHE_HIT, platform="cpu")
        begin = time.perf_counter()
        while time.perf_counter() - begin < 0.002:
            pass
        monitoring.record_event_duration_secs(
            monitoring.COMPILE, time.perf_counter() - begin, fun_name='f"<script>', platform="cpu"
        )
    whole = (time.perf_counter() - before) * 1e6
    hit, compiled = events(path)
    assert (hit["name"], hit["ph"], hit["args"]) == ("cache/hit", "i", {"platform": "cpu"})
    assert (compiled["name"], compiled["cat"], compiled["ph"]) == (
        'compile f"<script>', "compile", "X",
    )  # fmt: skip
    assert compiled["dur"] >= 2000
    assert 0 <= hit["ts"] <= compiled["ts"] <= compiled["ts"] + compiled["dur"] <= whole
    assert {e["tid"] for e in (hit, compiled)} == {threading.get_native_id()}
    assert {e["pid"] for e in (hit, compiled)} == {os.getpid()}


def test_nothing_is_heard_before_and_after(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    listeners = monitoring.get_event_listeners(), monitoring.get_event_duration_listeners()
    manager = monitoring.timeline(path)
    monitoring.record_event("before")
    with manager:
        monitoring.record_event("within")
        assert config.record_launches
    monitoring.record_event("after")
    assert names(path) == ["within"]
    assert not config.record_launches
    assert listeners == (
        monitoring.get_event_listeners(),
        monitoring.get_event_duration_listeners(),
    )
    with pytest.raises(ArgumentError, match="used before"), manager:
        pass


def test_an_event_that_began_before_the_block_starts_with_it(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with monitoring.timeline(path):
        monitoring.record_event_duration_secs("long", 100.0)
    [event] = events(path)
    assert event["ts"] == 0
    assert 0 <= event["dur"] < 90e6


def test_the_file_is_written_where_the_block_raises(tmp_path: Path) -> None:
    path = tmp_path / "a.json"

    def block() -> None:
        with monitoring.timeline(path):
            monitoring.record_event("one")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        block()
    assert names(path) == ["one"]
    assert not config.record_launches


def test_blocks_in_each_other(tmp_path: Path) -> None:
    outer, inner = tmp_path / "outer.json", tmp_path / "inner.json"
    with monitoring.timeline(outer):
        monitoring.record_event("one")
        with monitoring.timeline(inner):
            monitoring.record_event("two")
        assert config.record_launches
        monitoring.record_event("three")
    assert (names(outer), names(inner)) == (["one", "two", "three"], ["two"])
    with config.override(record_launches=True):
        pass
    assert not config.record_launches


def test_blocks_of_several_threads(tmp_path: Path) -> None:
    """Each block records all threads while it is open; its end does not end other blocks."""
    together = threading.Barrier(4)

    def work(number: int) -> None:
        with monitoring.timeline(tmp_path / f"{number}.json"):
            together.wait(60)
            for i in range(50):
                monitoring.record_event_duration_secs("step", 1e-6, thread=number, i=i)
            together.wait(60)

    threads = [threading.Thread(target=work, args=(n,), name=f"worker {n}") for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        found = events(tmp_path / f"{number}.json")
        assert len(found) == 200
        assert len({e["tid"] for e in found}) == 4
        content = json.loads((tmp_path / f"{number}.json").read_text())["traceEvents"]
        named = {e["args"]["name"] for e in content if e["name"] == "thread_name"}
        assert named == {f"worker {n}" for n in range(4)}
    assert not config.record_launches


def test_clearing_the_listeners_within_a_block(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    kept = monitoring.get_event_listeners(), monitoring.get_event_duration_listeners()
    with monitoring.timeline(path):
        monitoring.record_event("one")
        monitoring.clear_event_listeners()
        monitoring.record_event("two")
    for listener in kept[0]:
        monitoring.register_event_listener(listener)
    for heard in kept[1]:
        monitoring.register_event_duration_secs_listener(heard)
    assert names(path) == ["one"]


def test_a_path_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    file = tmp_path / "file"
    file.write_text("kept")
    for bad, why in [
        (tmp_path, "Is a directory"),
        (tmp_path / "missing" / "a.json", "No such file"),
        (file / "a.json", "Not a directory"),
        (fifo, "No such device or address"),
        (tmp_path / ("x" * 300), "too long"),
    ]:
        with pytest.raises(FileRefused, match=f"it cannot be written: .*{why}") as caught:
            monitoring.timeline(bad)
        assert str(bad) in str(caught.value)
        assert isinstance(caught.value, OSError)
        assert caught.value.errno in vars(errno).values()
    for none in (None, 3, "a\0b"):
        with pytest.raises(ArgumentError, match="timeline cannot be called with"):
            monitoring.timeline(none)  # type: ignore[arg-type]
    assert file.read_text() == "kept"
    assert not config.record_launches


def test_the_old_file_stays_until_the_block_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path is relative to the folder in which the block began."""
    monkeypatch.chdir(tmp_path)
    Path("a.json").write_text("old " * 1000)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with monitoring.timeline("a.json"):
        assert Path("a.json").read_text().startswith("old")
        monkeypatch.chdir(elsewhere)
    assert names(tmp_path / "a.json") == []
    assert not list(elsewhere.iterdir())


def test_claiming_a_file_makes_it_and_keeps_it(tmp_path: Path) -> None:
    assert files.claim(tmp_path / "new") == tmp_path / "new"
    assert (tmp_path / "new").read_bytes() == b""
    (tmp_path / "old").write_bytes(b"content")
    assert files.claim(str(tmp_path / "old")).read_bytes() == b"content"
