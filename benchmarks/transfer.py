"""What moving data costs: host to device and back, small and large."""

from __future__ import annotations

from harness import Row, arguments, compare, prepare, report

prepare()

import jax  # noqa: E402
import numpy as np  # noqa: E402

import plugrt  # noqa: E402


def measure() -> list[Row]:
    """Returns a row for each question."""
    rows = []
    for name, count, budgets in (
        ("4 floats", 4, (0.3, None)),
        ("64 kB", 16_384, (None, None)),
        ("64 MB", 16_777_216, (1.0, 1.0)),
    ):
        host = np.ones(count, np.float32)
        rounds = 15 if count < 1e6 else 7
        rows.append(
            compare(
                f"device_put of {name}",
                lambda host=host: plugrt.device_put(host).block_until_ready(),
                lambda host=host: jax.device_put(host).block_until_ready(),
                budgets[0],
                rounds,
            )
        )
        ours, theirs = plugrt.jit(lambda a: a + 1), jax.jit(lambda a: a + 1)
        mine, others = plugrt.device_put(host), jax.device_put(host)
        # A new result each time: both keep the host copy of an array that was read before.
        rows.append(
            compare(
                f"x + 1, then np.asarray, of {name}",
                lambda f=ours, x=mine: np.asarray(f(x)),
                lambda f=theirs, x=others: np.asarray(f(x)),
                budgets[1],
                rounds,
            )
        )
    return rows


if __name__ == "__main__":
    options = arguments(__doc__)
    report("Transfers on the cpu plugin", measure(), options.json)
