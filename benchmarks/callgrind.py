"""Counts the instructions of calls by callgrind, grouped by the part of the stack that runs them.

Needs ``valgrind`` on the PATH. The load of the machine does not change the counts.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

CALLS = 500
PLACES = {
    "the core": r"_core\.",
    "CPython": r"/(lib)?python[\d.]+[^/]*$",
    "the library": r"(xla_cpu_pjrt|libjax_common)\.so",
    "C's library (malloc, locks)": r"/(libc|libm|libstdc\+\+|libgcc_s|ld-linux)\b",
}
"""Parts of the stack, by the name of the shared library."""
HELP = "used by this program itself: what callgrind counts"


def control(*options: str) -> None:
    """Sends options to the callgrind that runs this process."""
    command = ["callgrind_control", *options, str(os.getpid())]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def count(script: str, number: int, counted: str = "yes") -> list[Counter[str]]:
    """Returns the instructions per call, by part, for each of ``number`` loops.

    Runs ``script`` with ``--counted`` and ``word``; there it calls `run_loops`.
    """
    if shutil.which("valgrind") is None:
        raise SystemExit("this benchmark needs valgrind on the PATH")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "counts"
        subprocess.run(
            ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}",
             sys.executable, script, "--counted", counted],
            check=True, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        found = [_read_counts(f"{out}.{part}") for part in range(1, 2 * number + 1)]
    return [_subtract(*found[part : part + 2]) for part in range(0, 2 * number, 2)]


def run_loops(loops: Iterable[Callable[[], object]]) -> None:
    """Runs each loop with calls and once without, and dumps the counts of both."""
    for loop in loops:
        for _ in range(3):
            loop()
        control("-i", "on")
        loop()
        control("-z")
        loop()
        control("-d")
        control("-d")
        control("-i", "off")


def repeat(call: Callable[[], object]) -> Callable[[], None]:
    """Returns the loop that makes a call many times."""

    def loop() -> None:
        for _ in range(CALLS):
            call()

    return loop


def _read_counts(path: str) -> Counter[str]:
    """Returns the instructions by part from a dump."""
    done = subprocess.run(
        ["callgrind_annotate", "--threshold=100", path], check=True, capture_output=True, text=True
    )
    found: Counter[str] = Counter()
    for number, file in re.findall(r"^ *([\d,]+) \(.*\[(.*)\]$", done.stdout, re.M):
        place = next((p for p, pattern in PLACES.items() if re.search(pattern, file)), "others")
        found[place] += int(number.replace(",", ""))
    return found


def _subtract(calls: Counter[str], nothing: Counter[str]) -> Counter[str]:
    """Returns the instructions per call: the difference of both counts."""
    calls.subtract(nothing)
    return Counter({place: round(number / CALLS) for place, number in calls.items()})
