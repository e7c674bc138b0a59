"""Measures a data-parallel call on four virtual cpu devices."""

from __future__ import annotations

from harness import Row, arguments, compare, prepare, report

DEVICES = 4
prepare(DEVICES)

import jax  # noqa: E402
import numpy as np  # noqa: E402
from devices import BUDGETS  # noqa: E402

import plugrt  # noqa: E402
from plugrt import lax  # noqa: E402


def measure() -> list[Row]:
    """Returns a row for each question. Times include the wait for results."""
    host = np.arange(4 * DEVICES, dtype=np.float32).reshape(DEVICES, 4)
    plus, plus_jax = plugrt.pmap(lambda x: x + 1), jax.pmap(lambda x: x + 1)
    total = plugrt.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
    total_jax = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")
    mine, others = plus(host), plus_jax(host)
    return [
        compare(
            f"pmap x + 1 on {DEVICES} devices",
            lambda: plus(mine).block_until_ready(),
            lambda: plus_jax(others).block_until_ready(),
            BUDGETS["pmap: two NumPy"][0],
        ),
        compare(
            f"pmap psum on {DEVICES} devices",
            lambda: total(mine).block_until_ready(),
            lambda: total_jax(others).block_until_ready(),
            BUDGETS["psum in pmap"][0],
        ),
        compare(
            "pmap x + 1, NumPy argument",
            lambda: plus(host).block_until_ready(),
            lambda: plus_jax(host).block_until_ready(),
            BUDGETS["pmap: two NumPy"][0],
        ),
        compare(
            "np.asarray(pmap x + 1)",
            lambda: np.asarray(plus(mine)),
            lambda: np.asarray(plus_jax(others)),
        ),
    ]


if __name__ == "__main__":
    options = arguments(__doc__)
    report(f"pmap on {DEVICES} virtual devices", measure(), options.json)
