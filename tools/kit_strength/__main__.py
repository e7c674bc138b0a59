"""Measures the conformance kit on defects that its authors did not choose.

    python -m tools.kit_strength --set N [--count 60] [--minutes 90] [--jobs 2] [--quick-only]
    python -m tools.kit_strength --show SEED

A set has the first 60 seeds from N*1000 whose defect a witness shows; set 3 is `third_set`.
``plugrt conform --quick`` runs on each, and the whole kit on survivors. A defect is caught if a
check fails that passes without the defect.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

from tools.kit_strength.grammar import Defect, compose
from tools.kit_strength.library import ROOT, Bench, find_library
from tools.kit_strength.third_set import third_set

BAD = ("FAIL", "CRASH", "TIMEOUT")
LIMITS = {"quick": 900, "full": 1800}
"""Seconds for one run of the kit."""
OUTCOMES = ("caught under the right name", "caught otherwise", "missed", "not run")
Checks = dict[str, dict[str, Any]]


class Session:
    """One set: its defects, the kit's verdicts without any, and the results so far."""

    def __init__(self, number: int, bench: Bench, arguments: argparse.Namespace) -> None:
        self.number, self.bench, self.arguments = number, bench, arguments
        self.until = time.monotonic() + 60 * arguments.minutes
        self.rows: list[dict[str, Any]] = []
        self.dropped = 0
        self._seeds = third_set() if number == 3 else map(compose, count(number * 1000))
        self._sources: set[str] = set()
        self._lock = threading.Lock()
        self._clean: dict[tuple[str, str], Checks] = {}
        self._locks = {(f, s): threading.Lock() for f in ("backend", "library") for s in LIMITS}

    def defects(self) -> Iterator[Defect]:
        """Yields the next defect that counts, until there are enough; several threads call it."""
        while True:
            with self._lock:
                if len(self.rows) >= self.arguments.count or time.monotonic() > self.until:
                    return
                defect = next(self._seeds, None)
                if defect is None:
                    return
                if defect.source in self._sources:
                    self.dropped += 1
                    continue
                self._sources.add(defect.source)
                row = {"seed": defect.seed, "family": defect.family, "class": defect.kind,
                       "function": defect.function, "defect": defect.sentence,
                       "outcome": "not run", "stage": "", "checks": []}  # fmt: skip
                self.rows.append(row)
            if row.setdefault("witness", self.bench.shown(defect)):
                yield defect
            else:
                with self._lock:
                    self.rows.remove(row)
                    self.dropped += 1

    def conform(self, defect: Defect | None, family: str, stage: str, *more: str) -> Checks | None:
        """Returns the verdicts of a kit run by id; None without a report."""
        name = defect.name if defect else f"without_{family}"
        folder = self.bench.folder / name
        folder.mkdir(exist_ok=True)
        report = folder / f"{stage}{len(more)}.json"
        report.unlink(missing_ok=True)
        environment = dict(os.environ)
        if family == "backend":
            target, option = "tools.kit_strength.backends:plugin", "num_devices=4"
            environment["PYTHONPATH"] = str(ROOT)
            environment["KIT_STRENGTH"] = defect.source if defect else "{}"
        else:
            shim = self.bench.shim(defect.source, name) if defect else self.bench.without()
            target, option = str(shim), "cpu_device_count=4"
        quick = ("--quick",) if stage == "quick" else ()
        command = (str(Path(sys.executable).with_name("plugrt")), "conform", target, *quick,
                   "--option", option, "--time-limit", "60", "--report", str(report), *more)  # fmt: skip # noqa: E501
        with open(folder / f"{stage}.txt", "w", encoding="utf-8") as output:
            child = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip
            try:
                child.wait(LIMITS[stage])
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        if not report.exists():
            return None
        return {c["id"]: c for c in json.loads(report.read_text("utf-8"))["checks"]}

    def clean(self, family: str, stage: str) -> Checks:
        """Returns the verdicts for the library, or the backend, without a defect."""
        with self._locks[family, stage]:
            if (family, stage) not in self._clean:
                found = self.conform(None, family, stage)
                if found is None:
                    raise SystemExit(f"no report of the {family} without a defect")
                self._clean[family, stage] = found
            return self._clean[family, stage]

    def accusations(self, defect: Defect, stage: str) -> list[dict[str, Any]] | None:
        """Returns the checks that fail because of the defect; None without a report."""
        family = "backend" if defect.family == "backend" else "library"
        before, found = self.clean(family, stage), self.conform(defect, family, stage)
        if found is None:
            return None
        new = [c for i, c in found.items()
               if c["verdict"] in BAD and before.get(i, {}).get("verdict") not in BAD]  # fmt: skip
        if new and all(c["verdict"] == "TIMEOUT" for c in new):  # a busy machine, or a hang?
            again = self.conform(defect, family, stage, *(f"--check={c['id']}" for c in new[:3]))
            new = [c for c in (again or {}).values() if c["verdict"] in BAD]
        return new

    def measure(self, defect: Defect) -> None:
        """Fills in the defect's row."""
        (row,) = [r for r in self.rows if r["seed"] == defect.seed]
        stages = ("quick",) if self.arguments.quick_only else tuple(LIMITS)
        for stage in stages:
            if time.monotonic() > self.until:
                return
            new = self.accusations(defect, stage)
            if new is None:
                row["outcome"], row["stage"] = "not run", f"{stage}: no report"
                return
            right = [c for c in new if names_fault(c, defect)]
            row["outcome"] = OUTCOMES[0] if right else OUTCOMES[1] if new else OUTCOMES[2]
            row["stage"] = stage
            row["checks"] = [f"{c['verdict']} {c['id']}" for c in (right or new)[:6]]
            if right or new:
                return

    def work(self) -> None:
        """Measures defects until there are enough; writes the results after each."""
        for defect in self.defects():
            start = time.monotonic()
            self.measure(defect)
            with self._lock:
                (row,) = [r for r in self.rows if r["seed"] == defect.seed]
                print(f"{row['seed']} {row['outcome']} ({row['stage']}, {time.monotonic() - start:.0f} s): "  # noqa: E501
                      f"{row['defect']} {row['checks'][:2]}", flush=True)  # fmt: skip
                self.write()

    def write(self) -> None:
        """Writes JSON and Markdown."""
        path = self.bench.folder / f"set{self.number}"
        result = {"set": self.number, "commit": _commit(), "date": time.strftime("%Y-%m-%d"),
                  "quick_only": self.arguments.quick_only, "dropped": self.dropped,
                  "defects": self.rows}  # fmt: skip
        path.with_suffix(".json").write_text(json.dumps(result, indent=1), "utf-8")
        path.with_suffix(".md").write_text(table(result), "utf-8")


def names_fault(check: dict[str, Any], defect: Defect) -> bool:
    """Returns whether a check's id, title or reference names the function at fault."""
    text = " ".join(str(check[key]) for key in ("id", "title", "rests_on"))
    return re.search(f"{defect.function}|{defect.words}", text, re.IGNORECASE) is not None


def _commit() -> str:
    command = ("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD")
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def table(result: dict[str, Any]) -> str:
    """Returns the figures by family, and the defects that were not caught under the right name."""
    rows = [r for r in result["defects"] if r["outcome"] in OUTCOMES]
    kit = "--quick alone" if result["quick_only"] else "--quick, then the whole kit"
    lines = [f"Set {result['set']}, {result['date']}, commit {result['commit']}, {kit}; "
             f"{result['dropped']} seeds dropped, whose defect no witness shows.", "",
             f"| family | defects | {' | '.join(OUTCOMES)} |", "| --- |" + " ---: |" * 5]  # fmt: skip # noqa: E501
    for family in (*sorted({r["family"] for r in rows}), "all"):
        of = Counter(r["outcome"] for r in rows if family in (r["family"], "all"))
        lines.append(f"| {family} | {of.total()} | {' | '.join(str(of[o]) for o in OUTCOMES)} |")
    lines += ["", "| seed | class | defect | outcome | by |", "| --- | --- | --- | --- | --- |"]
    for r in sorted(rows, key=lambda r: r["seed"]):
        said = r["defect"].replace("|", "\\|")
        if r["outcome"] != OUTCOMES[0]:
            lines.append(f"| {r['seed']} | {r['class']} | {said} | {r['outcome']} | {', '.join(r['checks'][:3])} |")  # fmt: skip # noqa: E501
    return "\n".join(lines) + "\n"


def main() -> None:
    """Runs the session."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--set", type=int, default=0)
    parser.add_argument("--show", type=int, metavar="SEED", help="print a defect; run nothing")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=90)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--quick-only", action="store_true")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "kit_strength")
    arguments = parser.parse_args()
    if arguments.show is not None:
        defect = compose(arguments.show)
        print(defect, defect.source, *defect.script, sep="\n")
        return
    library = find_library()
    if library is None:
        raise SystemExit("needs the wheel xla-cpu-pjrt, or KIT_STRENGTH_LIBRARY")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    session = Session(arguments.set, Bench(library, arguments.folder.resolve()), arguments)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for future in [pool.submit(session.work) for _ in range(arguments.jobs)]:
            future.result()
    session.write()
    print(table(json.loads((arguments.folder / f"set{arguments.set}.json").read_text("utf-8"))))


if __name__ == "__main__":
    main()
