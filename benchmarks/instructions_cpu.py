"""Counts the instructions of jitted calls on cpu: in plugrt, in JAX, and in jaxlib alone.

Uses callgrind on the calls of `jaxlib_floor.py`, which drop their results at once. JAX and plugrt
run in one process.
"""

from __future__ import annotations

from collections.abc import Callable

import callgrind

from harness import arguments, write_json

NAMES = ("two arrays", "32 arguments", "32 results", "tree of 40 in and out", "donate one")
SIDES = ("launch and results", "plugrt's call", "JAX's call")


def make_loops() -> list[Callable[[], object]]:
    """Returns the loops of each call: in jaxlib alone, in plugrt and in JAX."""
    from jaxlib_floor import sides

    return [callgrind.repeat(call) for name in NAMES for call in sides(name)]


if __name__ == "__main__":
    options = arguments(__doc__, counted=callgrind.HELP)
    if options.counted:
        callgrind.run_loops(make_loops())
        raise SystemExit
    counted = iter(callgrind.count(__file__, len(NAMES) * len(SIDES)))
    rows = []
    print(f"\nInstructions of a call on cpu\n{'':32} " + " ".join(f"{s:>18}" for s in SIDES))
    for name in NAMES:
        found = dict(zip(SIDES, counted, strict=False))
        places = {p: {s: found[s][p] for s in SIDES} for p in (*callgrind.PLACES, "others")}
        whole = {s: found[s].total() for s in SIDES}
        rows.append({"name": name, "all": whole, "places": places})
        for what, of in (("", whole), *places.items()):
            print(f"{f'  {what}' if what else name:32} " + " ".join(f"{of[s]:>18,}" for s in SIDES))
    write_json("Instructions of a call on cpu", rows, options.json)
