"""The instructions of a jitted call on a PJRT library, by where they run, and of the floor in C.

Counted by callgrind, which needs ``valgrind`` on the PATH, so that the load of the machine does not
matter. Calls are of two arrays of 4 floats on xla-cpu-pjrt, their results let go of at once. With
``--side`` this is the program that callgrind runs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from harness import arguments, prepare_library, write_json

CALLS = 500
PLACES = {
    "the core": r"_core\.",
    "CPython": r"/(lib)?python[\d.]+[^/]*$",
    "the library": r"xla_cpu_pjrt\.so",
    "C's library (malloc, locks)": r"/(libc|libm|libstdc\+\+|libgcc_s|ld-linux)\b",
}
"""What runs the instructions, by the file that has them."""


def control(*options: str) -> None:
    """Has callgrind, in which this process runs, do what the options say."""
    command = ["callgrind_control", *options, str(os.getpid())]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def make_call(side: str) -> Callable[[], object]:
    """Returns what makes `CALLS` calls, in plugrt or in C."""
    library = prepare_library()
    import numpy as np
    from floor import Floor

    import plugrt

    four = np.arange(4, dtype=np.float32)
    add = plugrt.jit(lambda a, b: a + b)
    if side == "C":
        timer = Floor(library).launch(add.lower(four, four).as_text(), four, 2, 1)
        return lambda: timer(CALLS)
    x, y = plugrt.device_put(four), plugrt.device_put(four)

    def call() -> None:
        for _ in range(CALLS):
            add(x, y)

    return call


def count(side: str) -> Counter[str]:
    """Returns the instructions of a call, by place."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "counts"
        subprocess.run(
            ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}",
             sys.executable, __file__, "--side", side],
            check=True, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        asked = ["callgrind_annotate", "--threshold=100"]
        both = [
            subprocess.run([*asked, f"{out}.{part}"], check=True, capture_output=True, text=True)
            for part in (1, 2)
        ]
    calls, nothing = (read_counts(done.stdout) for done in both)
    calls.subtract(nothing)
    return Counter({place: round(number / CALLS) for place, number in calls.items()})


def read_counts(told: str) -> Counter[str]:
    """Returns the instructions by place from what callgrind_annotate prints."""
    found: Counter[str] = Counter()
    for number, file in re.findall(r"^ *([\d,]+) \(.*\[(.*)\]$", told, re.M):
        place = next((p for p, pattern in PLACES.items() if re.search(pattern, file)), "others")
        found[place] += int(number.replace(",", ""))
    return found


def run_under_callgrind(side: str) -> None:
    """Makes the calls, and nothing, between two dumps of the counts."""
    call = make_call(side)
    for _ in range(3):
        call()
    control("-i", "on")
    call()
    control("-z")
    call()
    control("-d")
    control("-d")
    control("-i", "off")


if __name__ == "__main__":
    options = arguments(__doc__, side="used by this program itself: plugrt or C")
    if options.side:
        run_under_callgrind(options.side)
        raise SystemExit
    if shutil.which("valgrind") is None:
        raise SystemExit("this benchmark needs valgrind on the PATH")
    ours, floor = count("plugrt"), count("C")
    rows = [
        {"name": place, "plugrt": ours[place], "c": floor[place]} for place in (*PLACES, "others")
    ]
    print(f"\nInstructions of a call with two arrays\n{'':32} {'plugrt':>8} {'C':>8} {'added':>8}")
    for row in [*rows, {"name": "all", "plugrt": ours.total(), "c": floor.total()}]:
        added = row["plugrt"] - row["c"]
        print(f"{row['name']:32} {row['plugrt']:>8} {row['c']:>8} {added:>8}")
    write_json("Instructions of a call with two arrays", rows, options.json)
