"""How benchmarks measure: ours and JAX's in turn, A B A B, and the median of the pairwise ratios.

A ratio below 1 means that plugrt is faster. Times are per call; a sample is as many calls as take
about ``SAMPLE_SECONDS``, so that the clock and the loop do not count.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

SAMPLE_SECONDS = 0.02
ROUNDS = 15


@dataclass(frozen=True)
class Row:
    """One question's answer: median seconds a call of each, and the median pairwise ratio."""

    name: str
    ours: float
    jax: float
    ratio: float
    budget: float | None

    @property
    def holds(self) -> bool | None:
        """Whether the ratio is within the budget; None where there is none."""
        return None if self.budget is None else self.ratio <= self.budget


def calls_for(function: Callable[[], object], seconds: float = SAMPLE_SECONDS) -> int:
    """Returns how many calls take about ``seconds``."""
    count = 1
    while True:
        taken = sample(function, count) * count
        if taken > seconds / 4:
            return max(1, round(count * seconds / taken))
        count *= 4


def sample(function: Callable[[], object], count: int) -> float:
    """Returns the seconds that one of ``count`` calls took."""
    start = time.perf_counter()
    for _ in range(count):
        function()
    return (time.perf_counter() - start) / count


def compare(
    name: str,
    ours: Callable[[], object],
    jax: Callable[[], object],
    budget: float | None = None,
    rounds: int = ROUNDS,
) -> Row:
    """Measures both in turn. Each is called a few times before, so that it is compiled."""
    for function in (ours, jax):
        for _ in range(3):
            function()
    counts = calls_for(ours), calls_for(jax)
    gc.collect()
    gc.disable()
    try:
        pairs = [(sample(ours, counts[0]), sample(jax, counts[1])) for _ in range(rounds)]
    finally:
        gc.enable()
    return row(name, pairs, budget)


def row(name: str, pairs: Iterable[tuple[float, float]], budget: float | None) -> Row:
    """Returns the row for (ours, JAX's) pairs of seconds."""
    pairs = list(pairs)
    return Row(
        name,
        statistics.median(a for a, _ in pairs),
        statistics.median(b for _, b in pairs),
        statistics.median(a / b for a, b in pairs),
        budget,
    )


def environment() -> dict[str, str]:
    """Returns what the figures depend on."""
    facts = {"python": platform.python_version(), "machine": platform.platform()}
    facts["cores"] = str(os.cpu_count())
    for name in ("plugrt", "jax", "jaxlib", "numpy", "xla-cpu-pjrt"):
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            facts[name] = "not installed"
    return facts


def report(title: str, rows: list[Row], path: Path | None) -> None:
    """Prints the table, and writes it as JSON where a path is given."""
    print(f"\n{title}")
    print(f"{'':44} {'plugrt':>10} {'JAX':>10} {'ratio':>7} {'budget':>7}")
    for r in rows:
        budget = "" if r.budget is None else f"{r.budget:.2f}"
        verdict = {None: "", True: "holds", False: "OVER"}[r.holds]
        times = f"{human(r.ours):>10} {human(r.jax):>10}"
        print(f"{r.name:44} {times} {r.ratio:7.2f} {budget:>7} {verdict}")
    if path is not None:
        data = {
            "title": title,
            "environment": environment(),
            "rows": [{**asdict(r), "holds": r.holds} for r in rows],
        }
        path.write_text(json.dumps(data, indent=2) + "\n")


def human(seconds: float) -> str:
    """Returns a duration in the unit that suits it."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.2f} {unit}"
    return f"{seconds * 1e6:.2f} µs"


def arguments(description: str | None, **extra: str) -> argparse.Namespace:
    """Parses the command line: ``--json FILE``, and an option with that help for each extra."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    for name, text in extra.items():
        parser.add_argument(f"--{name}", help=text)
    return parser.parse_args()


def prepare(devices: int = 1) -> None:
    """Sets the environment that both sides read; call it before importing either."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["JAX_NUM_CPU_DEVICES"] = str(devices)
    os.environ["JAX_PLATFORMS"] = "cpu"
    if "jax" in sys.modules or "plugrt" in sys.modules:
        raise RuntimeError("prepare() must be called before jax or plugrt is imported")
