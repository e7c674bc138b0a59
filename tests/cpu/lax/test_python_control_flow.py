"""Control flow under ``disable_jit``: run by Python, with the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plugrt import debug_nans, disable_jit, jit, lax
from plugrt.errors import FloatingPointFault
from plugrt.execution.transfer import device_put
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


def test_bodies_see_values() -> None:
    seen = []
    with disable_jit():
        lax.fori_loop(0, 3, lambda i, x: seen.append(int(i)) or x, 0)
    assert seen == [0, 1, 2]


def test_nans_from_eager_loops_are_found() -> None:
    def halve(_: Any, x: Any) -> Any:
        return lax.log(lax.sub(x, 1))

    with debug_nans(), pytest.raises(FloatingPointFault, match=r"nan.* in fori_loop"):
        lax.fori_loop(0, 3, halve, np.float32(1.5))


def test_the_operation_in_a_jitted_loop_that_makes_a_nan_is_named() -> None:
    @jit
    def run(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, v: lax.log(lax.sub(v, 1)), x)

    with debug_nans(), pytest.raises(FloatingPointFault, match="in log"):
        run(np.float32(1.5))
