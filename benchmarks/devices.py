"""The calls of sharded.py in the compiled core and in Python, on cpu and on a PJRT library.

Each of the four is a process of its own, in which JAX makes the same calls in turn with plugrt.
"""

from __future__ import annotations

import cores

from harness import arguments

SHARDED = (0.7, 0.7)
"""Of calls without an exchange, in which nothing is put."""

BUDGETS: cores.Budgets = {
    "x + 1": SHARDED,
    "16 arguments, 16 results": SHARDED,
    "jit: one keyword": SHARDED,
    "jit: dict of 2 in and out": SHARDED,
    "jit: donate one": SHARDED,
    "pmap: one keyword": SHARDED,
    "pmap: dict of 2": SHARDED,
    "pmap: donate one": SHARDED,
    "a @ b, one all-reduce": (1.0, 1.0),
    "psum in shard_map": (0.85, 0.85),
    "psum in pmap": (0.85, 0.85),
    "device_put of 64 MB": (1.0, 1.0),
    "reshard of 64 MB, (x, y) to (y, x)": (0.8, 0.8),
}

if __name__ == "__main__":
    cores.report(
        "sharded.py",
        "Calls over 4 devices in the compiled core and in Python, divided by JAX's",
        BUDGETS,
        arguments(__doc__).json,
    )
