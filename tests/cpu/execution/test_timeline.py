"""A timeline of real calls: traces, compilations, puts, launches, waits and reads.

Differs from JAX: a timeline | `jax.profiler`, of host and device | `monitoring.timeline(path)`, of
the host's steps, as JSON for Perfetto.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import plugrt
from plugrt import array_api as xp
from plugrt import lax, monitoring

X = np.ones((8, 8), np.float32)


def _increase(i: Any, carry: Any) -> Any:
    return carry + 1


def recorded(path: Path, work: Callable[[], object]) -> list[dict[str, Any]]:
    with monitoring.timeline(path):
        work()
    return [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] != "M"]


def test_the_steps_of_a_first_call_come_in_their_order(tmp_path: Path) -> None:
    @plugrt.jit
    def step_of_mine(x: Any) -> Any:
        return xp.sin(x) @ x

    plugrt.devices()  # starts the backend, which would be recorded

    def work() -> None:
        x = plugrt.device_put(X)
        for _ in range(3):
            x = step_of_mine(x)
        np.asarray(x.block_until_ready())

    found = recorded(tmp_path / "a.json", work)
    assert [e["name"] for e in found] == [
        "device_put", "trace step_of_mine", "lower step_of_mine", "compile step_of_mine",
        *["launch step_of_mine"] * 3, "await", "read",
    ]  # fmt: skip
    for before, after in itertools.pairwise(found):
        assert before["ts"] + before["dur"] <= after["ts"] + 1, "one thread, one after the other"
    assert found[-1]["args"] == {"bytes": 256}
    assert found[4]["args"] == {"fun_name": "step_of_mine", "platform": plugrt.default_backend()}


def test_every_way_to_launch_is_recorded(tmp_path: Path) -> None:
    x = plugrt.device_put(X)
    jitted = plugrt.jit(lambda x: x + 1)
    compiled = plugrt.jit(lambda x: x * 3).lower(x).compile()
    loaded = plugrt.compile(plugrt.jit(lambda x: x * 4).lower(x).as_text())
    pmapped = plugrt.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
    nested = plugrt.jit(lambda tree: {"sum": tree["a"] + tree["b"]["c"]})
    ways: dict[str, Callable[[], object]] = {
        "jit": lambda: jitted(x),
        "jit of NumPy": lambda: jitted(X),
        "jit of a tree": lambda: nested({"a": x, "b": {"c": X}}),
        "compiled": lambda: compiled(x),
        "loaded": lambda: loaded(x),
        "pmap": lambda: pmapped(np.ones((2, 3), np.float32)),
        "operator": lambda: x - 1,
        "function": lambda: xp.cos(x),
        "control flow": lambda: lax.fori_loop(0, 2, _increase, x),
    }
    for name, call in ways.items():
        call()  # the first call: only warm ones are recorded
        counts = Counter(e["cat"] for e in recorded(tmp_path / "a.json", lambda: (call(), call())))  # noqa: B023
        assert counts["launch"] == 2, (name, counts)
        assert counts["trace"] == counts["compile"] == 0, (name, counts)
        assert not recorded(tmp_path / "a.json", lambda: None)


def test_threads_that_launch_have_their_own_rows(tmp_path: Path) -> None:
    f = plugrt.jit(lambda x: x + 1)
    f(X)
    names = ["first", "second"]

    def work() -> None:
        threads = [threading.Thread(target=f, args=(X,), name=name) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    found = recorded(tmp_path / "a.json", work)
    assert [e["cat"] for e in found] == ["launch", "launch"]
    content = json.loads((tmp_path / "a.json").read_text())["traceEvents"]
    assert {e["args"]["name"] for e in content if e["name"] == "thread_name"} == set(names)
