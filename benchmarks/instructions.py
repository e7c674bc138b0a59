"""The instructions of a jitted call on a PJRT library, by where they run, and of the floor in C.

Counted by callgrind. Calls are of two arrays of 4 floats on xla-cpu-pjrt, their results let go of
at once.
"""

from __future__ import annotations

from collections.abc import Callable

import callgrind

from harness import arguments, prepare_library, write_json


def make_loops() -> list[Callable[[], object]]:
    """Returns the loops of calls in plugrt and in C."""
    library = prepare_library()
    import numpy as np
    from floor import Floor

    import plugrt

    four = np.arange(4, dtype=np.float32)
    add = plugrt.jit(lambda a, b: a + b)
    timer = Floor(library).launch(add.lower(four, four).as_text(), four, 2, 1)
    x, y = plugrt.device_put(four), plugrt.device_put(four)
    return [callgrind.repeat(lambda: add(x, y)), lambda: timer(callgrind.CALLS)]


if __name__ == "__main__":
    options = arguments(__doc__, counted=callgrind.HELP)
    if options.counted:
        callgrind.run_loops(make_loops())
        raise SystemExit
    ours, floor = callgrind.count(__file__, 2)
    rows = [
        {"name": place, "plugrt": ours[place], "c": floor[place]}
        for place in (*callgrind.PLACES, "others")
    ]
    print(f"\nInstructions of a call with two arrays\n{'':32} {'plugrt':>8} {'C':>8} {'added':>8}")
    for row in [*rows, {"name": "all", "plugrt": ours.total(), "c": floor.total()}]:
        added = row["plugrt"] - row["c"]
        print(f"{row['name']:32} {row['plugrt']:>8} {row['c']:>8} {added:>8}")
    write_json("Instructions of a call with two arrays", rows, options.json)
