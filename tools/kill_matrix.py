"""Puts each mutant of the conformance kit through the checks of its group, in processes of its own.

Prints a line for each mutant and writes build/kill-matrix.json; exits with 1 if a mutant survives
the check that it was made for. WORDS on the command line: only mutants whose name has them. FULL=1
runs all checks on each mutant (hours) instead of its group's.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from plugrt_sdk.conformance import registry
from plugrt_sdk.conformance.check import Check
from plugrt_sdk.conformance.mutants import mutants
from plugrt_sdk.conformance.mutants.killers import AT, KILLERS
from plugrt_sdk.conformance.mutants.tables import SICK
from plugrt_sdk.conformance.runner import Runner
from plugrt_sdk.conformance.target import Target
from plugrt_sdk.conformance.worker import START

ROOT = Path(__file__).parents[1]
SECONDS = 20.0
MUTANT = "plugrt_sdk.conformance.mutants:mutant"


def main() -> int:
    """Runs the mutants, two at a time, and returns the exit code."""
    words = sys.argv[1:]
    names = [name for name in mutants() if all(word in name for word in words)]
    if not names:
        print(f"no mutant has {' and '.join(words)} in its name", file=sys.stderr)
        return 2
    with ThreadPoolExecutor(2) as pool:
        rows = [show(row) for row in pool.map(run, names)]
    path = ROOT / "build" / "kill-matrix.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(rows, indent=2) + "\n")
    survivors = [row["mutant"] for row in rows if not row["killed"]]
    print(f"{len(rows) - len(survivors)} of {len(rows)} mutants killed by their check; {path}")
    return 1 if survivors else 0


def run(name: str) -> dict[str, Any]:
    """Returns what the checks of a mutant's group say of it."""
    own = own_check(name)
    results = Runner(Target("object", MUTANT, argument=name), group(own), SECONDS).run()
    bad = {key: str(result.verdict) for key, result in results.items() if result.verdict.is_bad}
    verdict = results[own].verdict
    return {
        "mutant": name, "check": own, "verdict": str(verdict), "killed": verdict.is_bad,
        "got": results[own].got, "checks": len(results),
        "others": {key: value for key, value in bad.items() if key != own},
    }  # fmt: skip


def own_check(name: str) -> str:
    """Returns the check that a mutant was made for."""
    if name in SICK:
        return "abi.slots"
    if name not in KILLERS:
        return name
    return START if name.endswith("_at_start") else AT


def group(own: str) -> Sequence[Check]:
    """Returns the checks of a check's group: its chapter; of operations the same operation."""
    if os.environ.get("FULL") == "1":
        return list(registry.checks().values())
    prefix = own.rpartition(".")[0] if own.startswith("operations.") else own.partition(".")[0]
    return [check for check in registry.checks().values() if check.id.startswith(f"{prefix}.")]


def show(row: dict[str, Any]) -> dict[str, Any]:
    """Prints one line of the matrix."""
    others = f"; also {', '.join(row['others'])}" if row["others"] else ""
    state = "killed" if row["killed"] else "ALIVE "
    print(f"{state} {row['mutant']}: {row['verdict']}{others}", flush=True)
    return row


if __name__ == "__main__":
    sys.exit(main())
