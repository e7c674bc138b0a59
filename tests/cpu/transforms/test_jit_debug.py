"""Debugging settings: disable_jit, debug_nans, log_compiles, dumps, interrupts."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api, config, device_put, jit, lax
from plugrt.errors import FloatingPointFault
from support import children
from support.distributions import run_python
from support.ops import add, log, mul
from support.platforms import platform_environment

X = np.arange(3, dtype=np.float32)


@pytest.mark.parametrize("at_first", [True, False])
def test_a_runner_made_while_a_setting_changes_is_not_kept(at_first: bool) -> None:
    changes = [not at_first]

    def f(x: Any) -> Any:
        for value in changes:
            config.update("debug_nans", value)
        changes.clear()
        return log(x)

    def fails() -> bool:
        try:
            call(-X - 1)
        except FloatingPointFault:
            return True
        return False

    before, call = config.debug_nans, jit(f)
    try:
        config.update("debug_nans", at_first)
        fails()
        config.update("debug_nans", at_first)
        assert [fails(), fails()] == [at_first] * 2
    finally:
        config.update("debug_nans", before)


def test_debug_nans_finds_the_operation() -> None:
    f = jit(lambda x: mul(add(log(x), 1), 2))
    bad = device_put(np.float32([-1, 1]))
    assert np.isnan(np.asarray(f(bad))[0])
    with config.override(debug_nans=True):
        np.testing.assert_allclose(f(np.float32([1, 1])), [2, 2])
        for _ in range(2):
            with pytest.raises(FloatingPointFault, match=r"nan.*log") as caught:
                f(bad)
        assert isinstance(caught.value, FloatingPointError)
        with pytest.raises(FloatingPointFault, match=r"nan.*log"):
            log(bad)
    assert np.isnan(np.asarray(f(bad))[0])


def test_nans_that_the_function_is_given_are_not_its_fault_alone() -> None:
    f = jit(lambda x: add(x, 1))
    with config.override(debug_nans=True), pytest.raises(FloatingPointFault, match="add"):
        f(np.float32([np.nan]))


BAD = np.float32([[-1, 1]])


def first_log(x: Any) -> Any:
    return x, array_api.multiply(jit(array_api.log)(x), 2)  # messages name this line


LINE = rf"{Path(__file__).name}:{first_log.__code__.co_firstlineno + 1}"
PROGRAM = """
module @m {
  func.func private @g(%x: tensor<2xf32>) -> tensor<2xf32> {
    %y = stablehlo.log %x : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func public @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %y = func.call @g(%x) : (tensor<2xf32>) -> tensor<2xf32>
    %z = stablehlo.add %y, %y : tensor<2xf32>
    return %x, %z : tensor<2xf32>, tensor<2xf32>
  }
}"""
ONE: dict[str, Any] = {"devices": plugrt.devices()[:1]}
KINDS_OF_CALLS: dict[str, tuple[Any, str]] = {
    "jit": (lambda: jit(first_log), rf"log of \(float32\[1,2\]\), called at .*{LINE}"),
    "compiled": (
        lambda: jit(first_log).lower(BAD).compile(),
        rf"log of \(float32\[1,2\]\), called at .*{LINE}",
    ),
    "pmap": (
        lambda: plugrt.pmap(first_log, **ONE),
        rf"log of \(float32\[2\]\), called at .*{LINE}",
    ),
    "compiled pmap": (
        lambda: plugrt.pmap(first_log, **ONE).lower(BAD).compile(),
        rf"log of \(float32\[2\]\), called at .*{LINE}",
    ),
    "loaded program": (
        lambda: lambda x: plugrt.compile(PROGRAM)(x[0]),
        r"program 'main' of \(float32\[2\]\).*result 1, float32\[2\]; it comes from "
        r"stablehlo.log of \(float32\[2\]\) in line 4 of its text",
    ),
}


@pytest.mark.parametrize("kind", KINDS_OF_CALLS)
@pytest.mark.parametrize("looked_for", ["nan", "inf"])
def test_each_kind_of_call_names_operation_line_and_types(kind: str, looked_for: str) -> None:
    make, said = KINDS_OF_CALLS[kind]
    call = make()
    settings: Any = {f"debug_{looked_for}s": True}
    with config.override(**settings):
        call(BAD + 2)
        for given in (BAD, device_put(BAD)):
            with pytest.raises(FloatingPointFault, match=rf"\({looked_for}\)(?s:.*){said}"):
                call(given if looked_for == "nan" else given * 0)


@pytest.mark.parametrize("mapped", [False, True], ids=["jit", "pmap"])
def test_nans_in_arguments_and_closures_are_reported_as_such(mapped: bool) -> None:
    def transform(f: Any) -> Any:
        return plugrt.pmap(f, **ONE) if mapped else jit(f)

    held = device_put(np.float32([1, np.nan]))
    has_nan = np.float32([[1, np.nan]])
    with config.override(debug_nans=True):
        with pytest.raises(FloatingPointFault, match=r"before.*argument t\['a'\]\[0\] .*32\[1,2\]"):
            transform(lambda t: add(t["a"][0], 1))({"a": [has_nan]})
        with pytest.raises(FloatingPointFault, match=r"before.*array in the closure.*32\[2\]"):
            transform(lambda x: add(x, held))(BAD)
    if mapped:
        constant = np.float32([1, np.nan])
        with (
            config.override(debug_nans=True),
            pytest.raises(
                FloatingPointFault, match=r"before the call it was in argument y of 'add'"
            ),
        ):
            transform(lambda x: add(x, constant))(BAD)


NAN = np.float32([np.nan])
HELD = [
    pytest.param(lambda: jit(lambda x: x)(NAN), id="identity"),
    pytest.param(lambda: jit(lambda: float("nan"))(), id="python constant"),
    pytest.param(lambda: jit(lambda: NAN)(), id="captured"),
    pytest.param(lambda: plugrt.pmap(lambda x: x, **ONE)(NAN[None]), id="pmap"),
    pytest.param(lambda: jit(lambda x: x).lower(NAN).compile()(NAN), id="compiled"),
    pytest.param(lambda: jit(lambda x: (x, 3))(NAN), id="beside a constant"),
    pytest.param(lambda: jit(lambda x, i: (x, i + 1))(NAN, 1), id="beside integers"),
    pytest.param(lambda: jit(lambda x, y: (x, y * 2))(NAN, BAD + 2), id="beside floats"),
    pytest.param(lambda: lax.cond(True, lambda v: v, lambda v: v, device_put(NAN)), id="cond"),
    pytest.param(lambda: lax.fori_loop(0, 0, lambda i, c: c, device_put(NAN)), id="no steps"),
]


@pytest.mark.parametrize("call", HELD)
def test_a_program_without_floating_values_is_not_looked_into(call: Any) -> None:
    """Earlier, MLIR's bindings ended the process over an empty concatenation."""
    with config.override(debug_nans=True), pytest.raises(FloatingPointFault):
        call()


def test_an_infinity_that_a_reduction_starts_from_is_not_to_blame() -> None:
    f = plugrt.pmap(lambda x: array_api.max(x / 0.0), **ONE)
    with config.override(debug_infs=True), pytest.raises(FloatingPointFault, match="divide"):
        f(BAD)


def test_values_that_do_not_reach_a_result_are_not_to_blame() -> None:
    def f(x: Any) -> Any:
        safe = array_api.where(x > 0, array_api.log(x), 1.0)
        return array_api.sqrt(x - 3) * safe

    with (
        config.override(debug_nans=True),
        pytest.raises(FloatingPointFault, match=r"stablehlo\.sqrt"),
    ):
        plugrt.compile(jit(f).lower(BAD).as_text())(BAD)


_CHILD = """
import sys, time
import numpy as np
from plugrt import device_put
from plugrt import jit
from support.ops import add, mul, sin

X = np.arange(3, dtype=np.float32)
def check():
    np.testing.assert_array_equal(jit(lambda x: add(mul(x, 2), 1))(X), 2 * X + 1)
    np.testing.assert_array_equal(add(device_put(X), 1), X + 1)
check()

def slow_to_trace(x):
    started()
    while True:
        x = add(x, 1)

def slow_to_compile(x):
    for i in range(3000):
        x = sin(add(x, i))
    started()
    return x

for round in range(2):
    told = False
    def started():
        global told
        if not told:
            told = True
            print("go", flush=True)
    try:
        while True:  # a machine may be so busy that the signal comes after a compilation's end
            jit(lambda x: {function}(x))(X)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    check()
print("usable", flush=True)
"""


@pytest.mark.parametrize("function", ["slow_to_trace", "slow_to_compile"])
def test_an_interrupt_leaves_a_usable_process(function: str) -> None:
    tests = str(Path(__file__).parents[2])
    child = children.start(
        [sys.executable, "-c", _CHILD.replace("{function}", function)],
        env={**os.environ, "PYTHONPATH": tests, "JAX_NUM_CPU_DEVICES": "1"},
    )
    assert child.stdout is not None
    lines = []
    try:
        for line in child.stdout:
            lines.append(line.strip())
            if lines[-1] == "go":
                time.sleep(0.2)
                child.send_signal(signal.SIGINT)
            if lines[-1] == "usable":
                break
        _, error = child.communicate(timeout=60)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 0, error
    assert lines == ["go", "interrupted"] * 2 + ["usable"]


def test_interrupt_while_waiting_for_a_result() -> None:
    done = run_python(
        """
        import _thread, threading, time
        import numpy as np
        from plugrt import device_put
        from support.ops import add
        x = device_put(np.ones(3))
        add(x, 1)
        caught = threading.Event()

        def interrupt():
            # Python drops one that arrives while a finaliser runs.
            while not caught.wait(0.5):
                _thread.interrupt_main()

        threading.Thread(target=interrupt).start()
        try:
            while True:
                add(x, 1).block_until_ready()
        except KeyboardInterrupt:
            caught.set()
            print(np.asarray(add(x, 1)).sum())
        """,
        **platform_environment(),
    )
    assert done.stdout.strip() == "6.0", done.stderr


def test_disable_jit_runs_python_on_values() -> None:
    seen: list[Any] = []

    @jit
    def f(x: Any) -> Any:
        y = add(x, 1)
        seen.append(y)
        return jit(lambda z: mul(z, 2))(y) if float(np.asarray(y)[0]) == 1 else y

    with config.override(disable_jit=True):
        out = f(X)
    assert type(seen[0]) is plugrt.Array
    np.testing.assert_array_equal(out, 2 * (X + 1))
    with pytest.raises(TypeError, match="NumPy array"):
        f(X)
