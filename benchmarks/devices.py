"""Runs the calls of sharded.py with the compiled core and in Python, on cpu and on a PJRT library.

Each of the four combinations has its own process, in which JAX and plugrt make the calls in turn.
"""

from __future__ import annotations

import cores

from harness import arguments

BUDGETS: cores.Budgets = {
    **dict.fromkeys(
        (
            "x + y, y from NumPy",
            "x + y, y whole on each device",
            "16 arguments, 16 results",
            "jit: two NumPy, in_shardings",
            "jit: one keyword",
            "jit: dict of 2 in and out",
            "jit: donate one",
            "pmap: two NumPy",
            "pmap: one keyword",
            "pmap: dict of 2",
            "pmap: donate one",
        ),
        (0.7, 0.7),
    ),
    "x + 1": (0.4, 0.25),
    "a @ b, one all-reduce": (1.0, 1.0),
    "psum in shard_map": (1.05, 0.9),
    "psum in pmap": (1.05, 0.9),
    "reshard of 1 MB, (x, y) to (y, x)": (0.6, 0.9),
    "device_put of 64 MB": (0.6, 0.6),
    "reshard of 64 MB, (x, y) to (y, x)": (0.8, 0.8),
}


if __name__ == "__main__":
    cores.report(
        "sharded.py",
        "Calls over 4 devices in the compiled core and in Python, divided by JAX's",
        BUDGETS,
        arguments(__doc__).json,
    )
