"""Events of a call: plugrt's names and JAX's, and listeners that raise."""

from __future__ import annotations

import logging
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plugrt import config, jit, monitoring, pmap
from support.behaviour import behaviour
from support.platforms import capabilities

X = np.arange(3, dtype=np.float32)
STAGES = [
    "/jax/core/compile/jaxpr_trace_duration",
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "/jax/core/compile/backend_compile_duration",
]
CACHE = "/jax/compilation_cache/"
LOGGER = "plugrt.monitoring"

Recorded = list[tuple[str, str, tuple[float, ...], dict[str, Any]]]


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    """Records the arguments of listeners of each kind: kind, event, values, details."""
    found: Recorded = []

    def listener(kind: str) -> Any:
        return lambda event, *values, **kw: found.append((kind, event, values, kw))

    listeners = {kind: listener(kind) for kind in ("event", "duration", "span", "scalar")}
    monitoring.register_event_listener(listeners["event"])
    monitoring.register_event_duration_secs_listener(listeners["duration"])
    monitoring.register_event_time_span_listener(listeners["span"])
    monitoring.register_scalar_listener(listeners["scalar"])
    yield found
    monitoring.unregister_event_listener(listeners["event"])
    monitoring.unregister_event_duration_listener(listeners["duration"])
    monitoring.unregister_event_time_span_listener(listeners["span"])
    monitoring.unregister_scalar_listener(listeners["scalar"])


def of_jax(recorded: Recorded) -> list[tuple[str, str]]:
    """Returns the kind and the name of events with JAX's names, without the cache's prefix."""
    return [(k, e.removeprefix(CACHE)) for k, e, _, _ in recorded if e.startswith("/jax/")]


@behaviour(8, "a first call records scalar, duration and time span of each stage, as JAX does")
def test_a_first_call_under_jaxs_names(recorded: Recorded) -> None:
    def f(x: Any) -> Any:
        return x * 2 + 1

    jit(f)(X)
    stages = [(kind, stage) for stage in STAGES for kind in ("scalar", "duration", "span")]
    assert of_jax(recorded) == stages
    names = [kw["fun_name"] for _, e, _, kw in recorded if e in STAGES]
    assert names == ["f"] * 3 + ["jit(f)"] * 6
    for (_, _, [begin], _), (_, _, [seconds], _), (_, _, [start, end], _) in zip(
        *[[r for r in recorded if r[0] == kind and r[1] in STAGES]
          for kind in ("scalar", "duration", "span")], strict=True
    ):  # fmt: skip
        assert begin == start > 1e9
        assert end - start == pytest.approx(seconds, abs=1e-6)
    ours = [e for kind, e, _, _ in recorded if kind == "duration" and e.startswith("/plugrt/")]
    own = [monitoring.TRACE, monitoring.LOWER, monitoring.COMPILE]
    assert [e for e in ours if e in own] == own
    recorded.clear()
    jit(f)(X)
    assert of_jax(recorded) == []


@behaviour(8, "stages of `pmap` and of `lower().compile()` are recorded under the same names")
def test_other_ways_to_a_program(recorded: Recorded) -> None:
    jit(lambda x: x - 3).lower(X).compile()
    assert [e for kind, e in of_jax(recorded) if kind == "duration"] == STAGES
    recorded.clear()
    pmap(lambda x: x - 4)(X[None])
    assert [e for kind, e in of_jax(recorded) if kind == "duration"] == STAGES


@behaviour(
    8,
    "the persistent cache records requests, misses, hits, and the time that a hit has saved",
    jax="the same, but for `tasks_using_cache`, once a process",
)
def test_the_persistent_cache_under_jaxs_names(tmp_path: Path, recorded: Recorded) -> None:
    if not capabilities().executable_serialization:
        pytest.skip("its executables cannot be saved")
    tmp_path.chmod(stat.S_IRWXU)
    compiling = {
        "compilation_cache_dir": str(tmp_path), "persistent_cache_min_compile_time_secs": 0
    }  # fmt: skip
    with config.override(**compiling):
        for expected in (
            [("event", "compile_requests_use_cache"), ("event", "cache_misses")],
            [("event", "compile_requests_use_cache"), ("event", "cache_hits"),
             ("duration", "compile_time_saved_sec"), ("duration", "cache_retrieval_time_sec")],
        ):  # fmt: skip
            recorded.clear()
            jit(lambda x: x * 7 - 1)(X)
            found = of_jax(recorded)
            assert [one for one in found if one[1] not in STAGES] == expected
            assert ("duration", STAGES[2]) in found
    seconds = {e.removeprefix(CACHE): v[0] for kind, e, v, _ in recorded if kind == "duration"}
    took = seconds["cache_retrieval_time_sec"]
    assert took > 0
    assert seconds["compile_time_saved_sec"] + took > 0  # the sum is the compile time


@behaviour(
    8,
    "a listener that raises is logged with its traceback, and the call and other listeners go on",
    jax="JAX's calls break with the listener's error: one metrics collector stops a computation",
)
def test_a_listener_that_raises(caplog: pytest.LogCaptureFixture, recorded: Recorded) -> None:
    def sick(event: str, *values: float, **details: Any) -> None:
        raise RuntimeError("the collector is down")

    monitoring.register_event_duration_secs_listener(sick)
    monitoring.register_scalar_listener(sick)
    monitoring.register_event_time_span_listener(sick)
    try:
        with caplog.at_level(logging.ERROR, LOGGER):
            np.testing.assert_array_equal(jit(lambda x: x + 11)(X), X + 11)
    finally:
        monitoring.unregister_event_duration_listener(sick)
        monitoring.unregister_scalar_listener(sick)
        monitoring.unregister_event_time_span_listener(sick)
    assert {r.name for r in caplog.records} == {LOGGER}
    assert "sick" in caplog.text
    assert "the collector is down" in caplog.text
    assert ("duration", STAGES[2]) in of_jax(recorded)


@behaviour(8, "a stage that fails ends for listeners as well, after the time that it took")
def test_a_stage_that_fails_ends_for_listeners_too(recorded: Recorded) -> None:
    """Earlier, only its beginning was recorded, so that listeners counted it as running."""

    def f(x: Any) -> Any:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        jit(f)(X)
    assert of_jax(recorded) == [(kind, STAGES[0]) for kind in ("scalar", "duration", "span")]
    assert monitoring.TRACE not in [event for _, event, _, _ in recorded]  # nothing was traced
