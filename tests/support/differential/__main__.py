"""The long run: ``python -m support.differential --cases 1000 --seed 7``, in ``tests``.

Prints each difference that no entry of ``docs/data/jax_deviations.toml`` covers, shrunk, with a
program for each side, then how often each entry was met. Ends with 1 if there was a difference
without an entry, or a fault that no case showed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from support.differential.deviations import entries, entry_of
from support.differential.generate import FORMS, generate
from support.differential.report import differences_of, report


def main() -> int:
    """Runs that many cases of each form."""
    parser = argparse.ArgumentParser(prog="support.differential", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="of each form")
    parser.add_argument("--seed", type=int, default=10_000, help="of the first case")
    parser.add_argument("--forms", nargs="+", default=FORMS, choices=FORMS, metavar="FORM")
    parser.add_argument("--brief", action="store_true", help="print differences alone")
    given = parser.parse_args()
    met: Counter[str] = Counter()
    new = total = 0
    for form in given.forms:
        began, differing = time.process_time(), 0
        for seed in range(given.seed, given.seed + given.cases):
            case = generate(form, seed)
            found = differences_of(case)
            known = [entry_of(case, d) for d in found]
            met.update({entry.id for entry in known if entry})
            differing += bool(found)
            if None in known:
                new += 1
                if given.brief:
                    print(form, seed, case)
                    print(
                        *(f"    {d}" for d, e in zip(found, known, strict=True) if not e), sep="\n"
                    )
                else:
                    print(report(case))
        total += given.cases
        seconds = time.process_time() - began
        print(f"{form}: {given.cases} cases, {differing} differ, {seconds:.0f} s", flush=True)
    print(f"{total} cases, {new} with a difference that no entry covers")
    for entry in entries():
        print(f"{met[entry.id]:6} {entry.kind:9} {entry.id}")
    stale = [e.id for e in entries() if e.kind == "fault" and not met[e.id]]
    if stale and [*given.forms] == [*FORMS]:
        print(f"faults that no case showed; mended? {', '.join(stale)}")
    return int(bool(new or (stale and [*given.forms] == [*FORMS])))


if __name__ == "__main__":
    sys.exit(main())
