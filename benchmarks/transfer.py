"""Measures transfers from host to device and back, small and large."""

from __future__ import annotations

from harness import Row, arguments, compare, prepare, report

prepare()

import cores  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402

import plugrt  # noqa: E402


def measure() -> list[Row]:
    """Returns a row for each question."""
    rows = []
    for name, count, budgets in (
        ("4 floats", 4, (0.3, None)),
        ("64 kB", 16_384, (None, None)),
        ("64 MB", 16_777_216, (cores.BUDGETS["device_put of 64 MB"][0], 1.0)),
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
        # A new result each time: both hosts cache the value of an array that was read.
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


def measure_memcpy() -> list[Row]:
    """Returns rows of 64 MB, with NumPy's copy to existing memory in place of JAX."""
    host = np.ones(16_777_216, np.float32)
    there, on_device = np.empty_like(host), plugrt.jit(lambda a: a + 1)
    x = plugrt.device_put(host)
    copy = lambda: np.copyto(there, host)  # noqa: E731
    put = lambda: plugrt.device_put(host, may_alias=False).block_until_ready()  # noqa: E731
    return [
        compare("device_put of 64 MB, copied, to memcpy", put, copy, None, 7),
        compare("x + 1 and np.asarray of 64 MB, to memcpy", lambda: np.asarray(on_device(x)), copy,
                None, 7),
    ]  # fmt: skip


if __name__ == "__main__":
    options = arguments(__doc__)
    report("Transfers on the cpu plugin", [*measure(), *measure_memcpy()], options.json)
