"""Control flow under ``disable_jit``: run by Python, with the same results."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from plugrt import debug_nans, device_put, disable_jit, jit, lax
from plugrt.errors import FloatingPointFault
from support.jax_oracle import same

X = np.arange(6, dtype=np.float32).reshape(3, 2)


def accumulate(carry: Any, x: Any) -> Any:
    return lax.add(carry, x), {"twice": lax.mul(x, 2)}


CALLS = {
    "while": lambda: lax.while_loop(lambda x: lax.lt(x, 5), lambda x: lax.add(x, 2), np.int32(0)),
    "fori": lambda: lax.fori_loop(1, 4, lambda i, x: lax.add(x, i), np.int32(0)),
    "fori by arrays": lambda: lax.fori_loop(
        device_put(np.int8(1)), 4, lambda i, x: lax.add(x, i), np.int8(0)
    ),
    "scan": lambda: lax.scan(accumulate, np.zeros(2, np.float32), X)[1]["twice"],
    "scan back": lambda: lax.scan(lambda c, x: (x, c), np.zeros(2, np.float32), X, reverse=True)[1],
    "map": lambda: lax.map(lax.neg, X),
    "cond": lambda: lax.cond(0, lambda x: x, lambda x: lax.neg(x), X),
    "switch": lambda: lax.switch(9, [lambda x: x, lambda x: lax.neg(x)], X),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_staged_control_flow(name: str) -> None:
    staged = CALLS[name]()
    with disable_jit():
        same(CALLS[name](), np.asarray(staged))


def log(x: Any) -> Any:
    return lax.log(x)


MAKE_A_NAN = {
    "while": lambda x: lax.while_loop(
        lambda v: lax.lt(v[0], 2), lambda v: (lax.add(v[0], 1), lax.log(v[1])), (np.int32(0), x)
    ),
    "fori": lambda x: lax.fori_loop(0, 3, lambda _, v: lax.log(lax.sub(v, 1)), x),
    "fori by arrays": lambda x: lax.fori_loop(0, np.array(3), lambda _, v: lax.log(v), x),
    "scan": lambda x: lax.scan(lambda c, v: (lax.log(c), v), x, X),
    "map": lambda x: lax.map(log, lax.broadcast(x, (2,))),
    "cond": lambda x: lax.cond(True, log, lax.neg, x),
    "switch": lambda x: lax.switch(np.int32(7), [lax.neg, log], x),
    "cond in map": lambda x: lax.map(lambda v: lax.cond(v < 0, log, lax.neg, v), lax.full((2,), x)),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jitted"])
@pytest.mark.parametrize("name", MAKE_A_NAN)
@pytest.mark.parametrize("put", [np.float32, device_put], ids=["host", "array"])
def test_the_operation_that_makes_a_nan_is_named(name: str, compiled: bool, put: Any) -> None:
    run = MAKE_A_NAN[name]
    line = run.__code__.co_filename
    with debug_nans(), pytest.raises(FloatingPointFault, match=r"in log of .float32") as error:
        (jit(run) if compiled else run)(put(np.float32(-0.5)))
    assert line in str(error.value)


def test_functions_are_not_kept_for_another_run() -> None:
    def body(x: Any) -> Any:
        return lax.log(x)

    with debug_nans(), pytest.raises(FloatingPointFault):
        lax.map(body, np.float32([-1]))
    gone = weakref.ref(body)
    del body
    gc.collect()
    assert gone() is None


def test_a_nan_in_a_reducer_names_the_operation() -> None:
    with debug_nans(), pytest.raises(FloatingPointFault, match="in reduce of"):
        lax.reduce(np.float32([1, -1]), np.float32(0), lambda a, b: lax.log(lax.sub(a, b)), (0,))


def test_loop_bodies_get_concrete_values_under_disable_jit() -> None:
    seen = []
    with disable_jit():
        lax.fori_loop(0, 3, lambda i, x: seen.append(int(i)) or x, 0)
    assert seen == [0, 1, 2]
