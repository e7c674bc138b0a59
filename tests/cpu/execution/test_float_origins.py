"""The operation that made a NaN, in programs that Python cannot run again, also within regions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax.export
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import jit, lax
from plugrt.errors import FloatingPointFault
from support.effort import some_of
from support.jax_oracle import jax

F = Callable[..., Any]
X = np.float32([4, 9])


def faulty(v: Any) -> Any:
    return xp.sqrt(v)  # no other code in this file computes a root


LINE = rf"{Path(__file__).name}:{faulty.__code__.co_firstlineno + 1}"


def message_of(call: F, x: Any, **settings: bool) -> str:
    with (
        plugrt.config.override(**(settings or {"debug_nans": True})),  # type: ignore[arg-type]
        pytest.raises(FloatingPointFault) as caught,
    ):
        call(x)
    return str(caught.value)


def make_pmap(f: F, count: int = 1) -> Any:
    """Returns a pmap without a debug rerun, so that its module is searched for the origin."""
    call: Any = plugrt.pmap(f, "i", devices=plugrt.devices()[:count])
    call._make_rerun = lambda *_: None
    return call


def pmapped(f: F, x: Any) -> F:
    call = make_pmap(f)
    return lambda x: call(x[None])


def compiled_pmap(f: F, x: Any) -> F:
    call = make_pmap(f).lower(x[None]).compile()
    return lambda x: call(x[None])


def loaded(f: F, x: Any) -> F:
    return plugrt.compile(jit(f).lower(x).as_text())


def check_origin(
    f: F, x: Any, said: str, operation: str = "sqrt", makers: Sequence[Any] = (pmapped, loaded)
) -> None:
    """Checks that calls without a debug rerun report ``said``, and the line where one is known."""
    for make in makers:
        message = message_of(make(f, x), x)
        assert re.search(said, message), (make.__name__, message)
        if operation and make is loaded:
            (line,) = re.findall(r"in line (\d+) of its text", message)
            text = jit(f).lower(x).as_text().splitlines()
            assert f"stablehlo.{operation} " in text[int(line) - 1], message
        elif operation:
            assert re.search(rf"{said} at .*test_float_origins.py:\d+", message), message
        if operation == "sqrt" and make is not loaded:
            assert re.search(LINE, message), message


def at_step(step: int, i: Any) -> Any:
    """Returns NaN in a loop's later iterations, those with ``i >= step``."""
    return faulty(step - 0.5 - xp.astype(i, xp.float32))


def add_twice(captured: Any, x: Any) -> Any:
    return lax.fori_loop(0, 2, lambda i, c: c + captured, x)


MADE: dict[str, F] = {
    "while, first": lambda x: lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + at_step(0, c[0])), (0, x[0])
    ),
    "while, third": lambda x: lax.while_loop(
        lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] + at_step(2, c[0])), (0, x[0])
    ),
    "fori, first": lambda x: lax.fori_loop(0, 3, lambda i, c: c * at_step(0, i), x[0]),
    "fori, third": lambda x: lax.fori_loop(0, 5, lambda i, c: c * at_step(2, i), x[0]),
    "fori, last": lambda x: lax.fori_loop(0, 5, lambda i, c: c * at_step(4, i), x[0]) + 1,
    "scan, first": lambda x: lax.scan(lambda c, v: (c + faulty(v), c), x[0], x - 5),
    "scan, carry": lambda x: lax.scan(
        lambda c, i: (c + at_step(2, i), i), x[0], np.arange(5, dtype=np.int32)
    ),
    "scan, stacked": lambda x: lax.scan(
        lambda c, i: (c + 1, at_step(2, i)), x[0], np.arange(5, dtype=np.int32)
    ),
    "cond, true": lambda x: lax.cond(x[0] > 0, lambda v: faulty(v[0] - 5), lambda v: v[1], x),
    "cond, false": lambda x: lax.cond(x[0] < 0, lambda v: v[1], lambda v: faulty(v[0] - 5), x),
    "switch": lambda x: lax.switch(
        xp.astype(x[0] - 2, xp.int32), [lambda v: v, xp.log, lambda v: faulty(v - 6) * 2], x
    )[0],
    "branch in a loop": lambda x: lax.fori_loop(
        0, 5, lambda i, c: lax.cond(i == 3, lambda v: v + faulty(v - 100), lambda v: v + 1, c), x[0]
    ),
    "loop in a branch": lambda x: lax.cond(
        x[0] > 0,
        lambda v: lax.fori_loop(0, 4, lambda i, c: c - at_step(2, i), v[0]),
        lambda v: v[1],
        x,
    ),
    "loop in a loop": lambda x: lax.fori_loop(
        0, 3, lambda i, c: lax.fori_loop(0, 3, lambda j, d: d + at_step(3, i + j), c) * 2, x[0]
    ),
    "function in a loop": lambda x: lax.fori_loop(
        0, 3, lambda i, c: c + jit(lambda k: jit(at_step, static_argnums=0)(1, k))(i), x[0]
    ),
    "after a loop": lambda x: faulty(lax.fori_loop(0, 3, lambda i, c: c - 9, x[0])),
    "after a loop without steps": lambda x: faulty(
        lax.while_loop(lambda c: c[0] < 0, lambda c: (c[0], xp.log(-c[0]) + c[1]), (x[0], -x[1]))[1]
    ),
    "captured": lambda x: add_twice(faulty(x[0] - 5), x[0]),
}


@pytest.mark.parametrize("case", some_of([*MADE], 6, "2"))
def test_regions_are_looked_into(case: str) -> None:
    said = r"\(nan\).* comes from stablehlo\.sqrt of \(float32\[2?\]\)"
    check_origin(MADE[case], X, said, makers=(pmapped, compiled_pmap, loaded))
    message = message_of(jit(MADE[case]).lower(X).compile(), X)  # it has a debug rerun
    assert re.search(rf"in sqrt of \(float32\[2?\]\), called at .*{LINE}", message), message


FIRST: dict[str, F] = {
    "earlier step": lambda x: lax.fori_loop(
        0, 5, lambda i, c: c + xp.log(3.5 - xp.astype(i, xp.float32)) + at_step(1, i), x[0]
    ),
    "same step, earlier operation": lambda x: lax.fori_loop(
        0, 5, lambda i, c: at_step(2, i) + xp.log(1.5 - xp.astype(i, xp.float32)) + c, x[0]
    ),
    "earlier loop": lambda x: lax.fori_loop(
        0,
        3,
        lambda i, c: c * xp.log(-c),
        lax.fori_loop(0, 3, lambda i, c: c + at_step(1, i), x[0]) * -1,
    ),
    "earlier carry": lambda x: lax.fori_loop(
        0,
        4,
        lambda i, c: (c[0] + c[1] + xp.log(2.5 - xp.astype(i, xp.float32)), c[1] + at_step(1, i)),
        (x[0], x[1]),
    )[0],
    "what ends the loop": lambda x: lax.while_loop(
        lambda c: ~(xp.log(2 - c[0]) < -9) & (c[0] < 8),
        lambda c: (c[0] + 1, faulty(-c[0])),
        (x[0], x[1]),
    )[1],
    "what selects the branch": lambda x: lax.cond(
        xp.log(-x[0]) > 0, lambda v: v, lambda v: faulty(v - 5), x[0]
    ),
    "masked in a loop": lambda x: lax.fori_loop(
        0, 4, lambda i, c: c + xp.where(i > 9, xp.log(-c), 1.0) + at_step(2, i), x[0]
    ),
    "overwritten": lambda x: lax.fori_loop(
        0, 4, lambda i, c: (xp.log(-x[0]) * 0, c[1] + at_step(2, i)), (x[0], x[0])
    )[1],
}


@pytest.mark.parametrize("case", some_of([*FIRST], 4))
def test_the_first_that_reaches_a_result_is_to_blame(case: str) -> None:
    check_origin(FIRST[case], X, r"comes from stablehlo\.sqrt of \(float32\[\]\)")


BAD = np.float32([np.nan, 3])
PASSED_IN: dict[str, F] = {
    "carried": lambda x: lax.fori_loop(0, 3, lambda i, c: faulty(c), x),
    "no steps": lambda x: lax.while_loop(
        lambda c: c[0] < 0, lambda c: (c[0] + 1, c[1] * 2), (0, faulty(x) + x)
    )[1][:1],
    "captured": lambda x: lax.fori_loop(0, 3, lambda i, c: c + faulty(x[0]), x[1]),
    "branch": lambda x: lax.cond(x[1] > 0, lambda v: v * 2, lambda v: v, x),
    "scanned": lambda x: lax.scan(lambda c, v: (c, v * 2), 0.0, x)[1],
    "swapped": lambda x: lax.fori_loop(0, 3, lambda i, c: (c[1], c[0]), (x[0], x[1]))[1],
}


@pytest.mark.parametrize("case", some_of([*PASSED_IN], 3))
def test_passed_in_nans_are_reported_as_passed_in(case: str) -> None:
    check_origin(PASSED_IN[case], BAD, "it was passed in, no operation made it.*before the", "")


def test_a_constant_in_a_loop_is_told() -> None:
    constant = np.float32([np.nan, 1])
    message = message_of(pmapped(lambda x: lax.fori_loop(0, 3, lambda i, c: c + constant, x), X), X)
    assert "it is in a constant of the program, float32[2]" in message


INTEGERS: dict[str, F] = {
    "loop without floats": lambda x: (lax.fori_loop(0, 3, lambda i, c: c * 2, 1), faulty(x[0] - 5)),
    "branches without floats": lambda x: (
        lax.cond(x[0] > 0, lambda: 2, lambda: 1),
        lax.fori_loop(0, lax.switch(1, [lambda: 1, lambda: 3]), lambda i, c: c + at_step(2, i), x),
    ),
}


@pytest.mark.parametrize("case", INTEGERS)
def test_loops_of_integers_are_passed_over(case: str) -> None:
    check_origin(INTEGERS[case], X, r"comes from stablehlo\.sqrt of \(float32\[\]\)")


@pytest.mark.parametrize("dtype", [np.complex64, ml_dtypes.bfloat16, np.float16])
def test_other_floating_types(dtype: Any) -> None:
    x = np.array([4, 9], dtype)
    bad = x.copy()
    bad[1] = 0

    def f(x: Any) -> Any:
        def step(i: Any, c: Any) -> Any:
            return lax.cond(i == 2, lambda v: v + (x - x) / bad, lambda v: v, c)

        return lax.fori_loop(0, 4, step, x)

    name = np.dtype(dtype).name
    check_origin(f, x, rf"comes from stablehlo\.divide of \({name}\[2\], {name}\[2\]\)", "divide")


STARTS = """func.func public @main(%x: tensor<2xf32>) -> tensor<f32> {
  %start = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<2xf32>
  %y = stablehlo.divide %x, %zero : tensor<2xf32>
  %z = stablehlo.reduce(%y init: %start) applies stablehlo.maximum across dimensions = [0]
    : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
  return %z : tensor<f32>
}"""


def test_the_initial_value_of_a_reduction_is_not_reported() -> None:
    message = message_of(plugrt.compile(STARTS), X, debug_infs=True)
    assert "comes from stablehlo.divide of (float32[2], float32[2]) in line 4" in message


HANDED_ON: dict[str, F] = {
    "permuted": lambda v: lax.ppermute(v, "i", [(0, 1), (1, 0)]),
    "permuted twice": lambda v: lax.ppermute(
        lax.ppermute(v, "i", [(0, 1), (1, 0)]) * 2, "i", [(0, 1), (1, 0)]
    ),
    "summed": lambda v: lax.psum(v, "i"),
    "gathered": lambda v: xp.sum(lax.all_gather(v, "i")),
}


@pytest.mark.parametrize(
    ("case", "in_loop"),
    some_of([(case, in_loop) for case in HANDED_ON for in_loop in (False, True)], 3),
)
def test_a_nan_from_another_device_is_found_there(case: str, in_loop: bool) -> None:
    def f(x: Any) -> Any:
        def step(i: Any, c: Any) -> Any:
            return HANDED_ON[case](faulty(c - 5)) + 6

        return lax.fori_loop(0, 3, step, x) if in_loop else step(0, x)

    call = make_pmap(f, 2)
    assert "comes from stablehlo.sqrt of (float32[])" in message_of(call, X)


def test_programs_that_jax_wrote() -> None:
    def f(x: Any) -> Any:
        def step(c: Any, v: Any) -> Any:
            bad = jax.lax.cond(v > 2, jax.jit(jnp.linalg.norm), lambda u: jnp.sum(jnp.sqrt(u)), c)
            return c + bad, jnp.where(v > 2, bad, v)

        return jax.lax.scan(step, x - 5, jnp.arange(4.0))

    for source in (
        jax.jit(f).lower(X).as_text(),
        jax.jit(f).lower(X).as_text(debug_info=True),
        jax.export.export(jax.jit(f))(X).serialize(),
    ):
        message = message_of(plugrt.compile(source), X)
        assert "comes from stablehlo.sqrt of (float32[2])" in message
        assert "#loc" not in str(source) or re.search(Path(__file__).name + r":\d+", message)


CASE = """
module @m {
  func.func private @root(%x: tensor<f32>) -> tensor<f32> {
    %y = stablehlo.sqrt %x : tensor<f32>
    return %y : tensor<f32>
  }
  func.func public @main(%x: tensor<2xf32>, %i: tensor<i32>) -> (tensor<i32>, tensor<f32>) {
    %minus = stablehlo.constant dense<-1.0> : tensor<f32>
    %found:2 = "stablehlo.case"(%i) ({
      %y = stablehlo.log %minus : tensor<f32>
      stablehlo.return %i, %y : tensor<i32>, tensor<f32>
    }, {
      %y = func.call @root(%minus) : (tensor<f32>) -> tensor<f32>
      stablehlo.return %i, %y : tensor<i32>, tensor<f32>
    }) : (tensor<i32>) -> (tensor<i32>, tensor<f32>)
    return %found#0, %found#1 : tensor<i32>, tensor<f32>
  }
}"""


@pytest.mark.parametrize(("index", "said"), [(0, "log of .* line 10"), (1, "sqrt of .* line 4")])
def test_the_branch_that_was_taken_is_to_blame(index: int, said: str) -> None:
    call = plugrt.compile(CASE)
    message = message_of(lambda x: call(x, np.int32(index)), X)
    assert re.search(rf"comes from stablehlo\.{said} of its text", message), message
