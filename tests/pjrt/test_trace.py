"""``plugrt trace`` around real hosts: stock JAX and plugrt, on a real library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.absent_core import needs_sdk_core
from support.native_core import preloads_tracer
from support.requirements import needs_jax
from support.xla_cpu import library_path, needs_library

pytestmark = [needs_sdk_core, preloads_tracer]

UNDER_JAX = """
import jax, jax.numpy as jnp, numpy as np
add = jax.jit(lambda x: x + 1)
x = jnp.arange(4.0)
for _ in range(20):
    x = add(x)
assert np.asarray(x)[0] == 20
try:
    jnp.ones((1 << 20, 1 << 20)).block_until_ready()
except jax.errors.JaxRuntimeError as error:
    assert "RESOURCE_EXHAUSTED" in str(error)
sums = jax.pmap(lambda v: jax.lax.psum(v, "i"), axis_name="i")(jnp.ones(jax.device_count()))
assert np.asarray(sums)[0] == jax.device_count()
assert jax.devices()[0].platform == "cpu"
"""
UNDER_PLUGRT = """
import threading
import numpy as np, plugrt
from plugrt import lax
add = plugrt.jit(lambda x: x + 1)
def work():
    x = plugrt.device_put(np.zeros(4, np.float32))
    for _ in range(20):
        x = add(x)
    assert np.asarray(x)[0] == 20
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
count = plugrt.device_count()
sums = plugrt.pmap(lambda v: lax.psum(v, "i"), axis_name="i")(np.ones(count, np.float32))
assert np.asarray(sums)[0] == count
try:
    plugrt.compile("module { func.func public @main() { return nonsense } }")
except plugrt.errors.PlugrtError:
    pass
"""  # objects that live at exit are no leak


def trace(
    program: str, folder: Path, form: str, *options: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    target = folder / "trace.json"
    ended = subprocess.run(
        [sys.executable, "-m", "plugrt", "trace", "--check", "--format", form, "-o", str(target),
         *options, "--", sys.executable, "-c", program],
        capture_output=True, text=True, timeout=180,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )  # fmt: skip
    return ended, json.loads(target.read_text())


def overlapping(calls: list[dict[str, Any]]) -> list[str]:
    """Returns the events that partly overlap another of their thread: Perfetto drops those."""
    found: list[str] = []
    open_ends: dict[tuple[int, int], list[int]] = {}
    for event in sorted(calls, key=lambda event: (event["ts"], -event["dur"])):
        begin, size = (round(1000 * event[key]) for key in ("ts", "dur"))
        ends = open_ends.setdefault((event["pid"], event["tid"]), [])
        while ends and ends[-1] <= begin:
            ends.pop()
        if ends and ends[-1] < begin + size:
            found.append(event["name"])
        ends.append(begin + size)
    return found


@needs_jax
@needs_library
def test_jax_breaks_no_rule_and_its_calls_are_chrome_events(tmp_path: Path) -> None:
    options = ("--library", str(library_path()))
    ended, document = trace(UNDER_JAX, tmp_path, "chrome", *options)
    assert ended.returncode == 0, ended.stderr
    assert "0 findings." in ended.stderr
    events = document["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X"}
    calls = [event for event in events if event["ph"] == "X"]
    for event in calls:
        assert event["ts"] >= 0
        assert event["dur"] >= 0
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert isinstance(event["args"], dict)
    names = [event["name"] for event in calls]
    assert names.count("LoadedExecutable_Execute") >= 22
    assert "Event_OnReady (callback)" in names
    assert overlapping(calls) == []
    failed = [event for event in calls if event["cat"] == "error"]
    assert any("RESOURCE_EXHAUSTED" in event["args"]["error"] for event in failed)


@needs_library
def test_plugrt_breaks_no_rule(tmp_path: Path) -> None:
    options = ("--library", str(library_path()))
    ended, document = trace(UNDER_PLUGRT, tmp_path, "json", *options)
    assert ended.returncode == 0, ended.stderr
    processes = document["processes"]
    assert [process["findings"] for process in processes] == [[]] * len(processes)
    [main] = [process for process in processes if UNDER_PLUGRT in process["command"]]
    assert main["functions"]["LoadedExecutable_Execute"]["calls"] >= 81
    assert len({call["thread"] for call in main["calls"]}) >= 4
    alive = {name: handles["alive"] for name, handles in main["handles"].items()}
    assert alive == dict.fromkeys(alive, 0)
    ids = [call["call"] for call in main["calls"] if "function" in call]
    assert len(ids) == len(set(ids)) == sum(f["calls"] for f in main["functions"].values())


@needs_jax
def test_a_plugin_in_python_is_traced_under_jax_by_its_name(tmp_path: Path) -> None:
    """It registers a capsule with JAX itself: the library of that name comes first."""
    program = """
import jax, numpy as np
assert jax.devices()[0].platform == "numpy"
assert np.asarray(jax.jit(lambda x: x + 1)(np.float32([1, 2])))[1] == 3
"""
    ended, document = trace(program, tmp_path, "json", "--plugin", "numpy")
    assert ended.returncode == 0, ended.stderr
    [process] = document["processes"]
    assert process["findings"] == []
    assert process["functions"]["LoadedExecutable_Execute"]["calls"] >= 1
    assert {handles["alive"] for handles in process["handles"].values()} == {0}
