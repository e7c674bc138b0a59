"""`disable_jit`: which code runs operation by operation."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import Array, config, jit, lax, monitoring, pmap, xla_computation
from plugrt import array_api as xp
from plugrt.interface import Client, Program
from support.behaviour import behaviour
from support.compiles import counting

X = np.arange(3, dtype=np.float32)


def steps(x: Any) -> Any:
    y = xp.sin(x)
    if y[0] > -2:  # a traced array has no value
        y = y + 71
    return y


EXPECTED = np.sin(X) + 71


@behaviour(17, "a debugger steps through: each line sees arrays with values")
def test_a_debugger_sees_values() -> None:
    seen: list[tuple[int, Any]] = []

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code is steps.__code__ and event in ("line", "return"):
            y = frame.f_locals.get("y")
            seen.append((frame.f_lineno, None if y is None else np.asarray(y).copy()))
        return trace

    before = sys.gettrace()
    with plugrt.disable_jit():
        sys.settrace(trace)
        try:
            result = jit(steps)(X)
        finally:
            sys.settrace(before)
    np.testing.assert_allclose(result, EXPECTED, rtol=1e-6)
    lines = [line - steps.__code__.co_firstlineno for line, _ in seen]
    assert lines == [1, 2, 3, 4, 4]
    np.testing.assert_allclose(seen[1][1], np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(seen[-1][1], EXPECTED, rtol=1e-6)


@behaviour(17, "lowering and compiling ahead of time, and `xla_computation`, are unchanged")
def test_ahead_of_time() -> None:
    f = jit(lambda x: xp.sin(x) * 72)
    expected = f.lower(X).as_text()
    with plugrt.disable_jit():
        lowered = f.lower(X)
        assert lowered.as_text() == expected
        with counting() as counts:
            np.testing.assert_allclose(lowered.compile()(X), np.sin(X) * 72, rtol=1e-6)
        assert counts[monitoring.COMPILE] == 1
        assert f.eval_shape(X).shape == (3,)
        assert "sine" in xla_computation(lambda x: xp.sin(x))(X).as_hlo_text()


@behaviour(17, "events, logs, dumps and rewriters see the operations, one by one")
def test_events_logs_dumps_and_rewriters(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shape = (3, 73)  # no other test has compiled it
    names: list[str] = []

    def look(program: Program, client: Client) -> None:
        names.append(program.name)

    x = plugrt.device_put(np.ones(shape, np.float32))
    with (
        plugrt.disable_jit(),
        plugrt.log_compiles(),
        caplog.at_level(logging.WARNING, "plugrt.compile"),
        config.override(dump_ir_to=str(tmp_path), program_rewriters=(look,)),
        counting() as counts,
    ):
        jit(lambda x: xp.sin(x) * xp.cos(x))(x)
    assert names == ["sin", "cos", "multiply"]
    assert counts[monitoring.COMPILE] == 3
    assert sorted(p.name.split("_")[3] for p in tmp_path.iterdir()) == ["cos", "multiply", "sin"]
    assert [m.split()[1] for m in caplog.messages if m.startswith("Compiling")] == names


@behaviour(17, "donated arguments stay; the compiler's options are taken and unused")
def test_options_of_jit() -> None:
    x = plugrt.device_put(X)
    f = jit(
        lambda x, n: x + n, static_argnums=1, donate_argnums=0,
        compiler_options={"no_such_option": 1},
    )  # fmt: skip
    with plugrt.disable_jit():
        np.testing.assert_array_equal(f(x, 5), X + 5)
    assert not x.is_deleted()


@behaviour(17, "loops and branches run in Python; `pmap` still maps over its devices")
def test_control_flow_and_pmap() -> None:
    kinds: list[type] = []

    def body(i: Any, carry: Any) -> Any:
        kinds.append(type(carry))
        return carry + i

    with plugrt.disable_jit():
        assert lax.fori_loop(0, 3, body, plugrt.device_put(1.0)) == 4
        mapped = pmap(lambda x: x - lax.psum(x, "i"), axis_name="i")
        np.testing.assert_array_equal(mapped(X[:2]), [-1, 0])
    assert set(kinds) == {Array}
    assert len(kinds) == 3


@behaviour(17, "exceptions show the user's frames as ever, and `debug_nans` names the operation")
def test_exceptions() -> None:
    x = plugrt.device_put(X)
    with (
        plugrt.disable_jit(),
        plugrt.debug_nans(),
        pytest.raises(FloatingPointError, match=r"nan.* encountered in divide"),
    ):
        jit(lambda x: x / x)(x)
