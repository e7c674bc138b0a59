"""Counts the instructions of a jitted call on a PJRT library, by part, and of the same call in C.

Uses callgrind. Each call has two arrays of 4 floats on xla-cpu-pjrt and drops its result at once.
The call is also counted without the C++ functions that catch a library's exceptions.
"""

from __future__ import annotations

from collections.abc import Callable

import callgrind

from harness import arguments, prepare_library, write_json


def make_loops(catching: bool) -> list[Callable[[], object]]:
    """Returns the loops: plugrt with and without catching exceptions, and C."""
    library = prepare_library()
    import numpy as np
    from floor import Floor

    import plugrt
    from plugrt.capi.loading import exception_guard

    exception_guard.CATCHES &= catching
    four = np.arange(4, dtype=np.float32)
    add = plugrt.jit(lambda a, b: a + b)
    timer = Floor(library).launch(add.lower(four, four).as_text(), four, 2, 1)
    x, y = plugrt.device_put(four), plugrt.device_put(four)
    return [callgrind.repeat(lambda: add(x, y)), lambda: timer(callgrind.CALLS)]


if __name__ == "__main__":
    options = arguments(__doc__, counted=callgrind.HELP)
    if options.counted:
        callgrind.run_loops(make_loops(catching=options.counted != "uncaught"))
        raise SystemExit
    ours, floor = callgrind.count(__file__, 2)
    uncaught, _ = callgrind.count(__file__, 2, "uncaught")
    print(f"{'a call with two arrays':32} {'plugrt':>8} {'uncaught':>8} {'C':>8}")
    rows = []
    for place in (*callgrind.PLACES, "others"):
        counts = {"plugrt": ours[place], "uncaught": uncaught[place], "c": floor[place]}
        print(f"{place:32} {' '.join(f'{number:>8}' for number in counts.values())}")
        rows.append({"name": place, **counts})
    print(f"catching exceptions adds {ours.total() / uncaught.total() - 1:.2%}")
    write_json("Instructions of a call with two arrays", rows, options.json)
