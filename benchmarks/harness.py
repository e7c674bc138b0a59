"""Measures plugrt and JAX in turn, A B A B, and returns the median of the pairwise ratios.

A ratio below 1 means that plugrt is faster. Times are per call. A sample has as many calls as fit
into ``SAMPLE_SECONDS``, so that the overhead of the clock and the loop is small. Comparisons of two
sides use many samples of ``SHORT_SECONDS`` instead, which is less than a scheduler's time slice: on
a busy machine most samples are not interrupted, and the ratio of the least times is close to that
on an idle machine.
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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SAMPLE_SECONDS = 0.02
ROUNDS = 15
SHORT_SECONDS = 0.001
ROW_SECONDS = 0.6


@dataclass(frozen=True)
class Row:
    """One result: median seconds per call of both sides, and the median pairwise ratio.

    ``of_least`` is the ratio of the least times.
    """

    name: str
    ours: float
    jax: float
    ratio: float
    of_least: float
    budget: float | None

    @property
    def holds(self) -> bool | None:
        """Whether the ratio is within the budget; None without a budget."""
        return None if self.budget is None else self.ratio <= self.budget


Timer = Callable[[int], float]
"""A function from a number of calls to the mean seconds of a call."""


def calls_for(function: Callable[[], object], seconds: float | None = None) -> int:
    """Returns the number of calls that fit into ``seconds``, as `count_for` does."""
    return count_for(timed(function), seconds)


def count_for(timer: Timer, seconds: float | None = None, most: int = 1 << 30) -> int:
    """Returns how many calls fit into ``seconds`` (`SAMPLE_SECONDS`), at most ``most``."""
    seconds = seconds or SAMPLE_SECONDS
    count = 1
    while True:
        taken = timer(count) * count
        if taken > seconds / 4 or count >= most:
            return max(1, min(most, round(count * seconds / taken)))
        count = min(most, count * 4)


def timed(function: Callable[[], object]) -> Timer:
    """Returns the timer of a function."""
    return lambda count: sample(function, count)


def sample(function: Callable[[], object], count: int) -> float:
    """Returns the mean seconds of ``count`` calls."""
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
    """Measures both functions in turn, after a few calls that compile them.

    Runs at least ``rounds`` pairs of samples, and more for up to `ROW_SECONDS`.
    """
    return compare_timers(name, timed(ours), timed(jax), budget, rounds)


def compare_timers(
    name: str, ours: Timer, jax: Timer, budget: float | None = None, rounds: int = ROUNDS,
    most: int = 1 << 30,
) -> Row:  # fmt: skip
    """Like `compare`, for calls that need an object made before each; at most ``most`` a sample."""
    found = measure_in_turn({"plugrt": ours, "JAX": jax}, rounds, most)
    return row(name, [(r["plugrt"], r["JAX"]) for r in found], budget)


def measure_in_turn(
    timers: Mapping[str, Timer],
    rounds: int = ROUNDS,
    most: int = 1 << 30,
    seconds: float = ROW_SECONDS,
) -> list[dict[str, float]]:
    """Returns the seconds of a call of each side, in at least so many rounds and for ``seconds``.

    Each round has a sample of each side, of at most ``most`` calls.
    """
    counts = {}
    for side, timer in timers.items():
        timer(min(3, most))
        counts[side] = count_for(timer, SHORT_SECONDS, most)
    found: list[dict[str, float]] = []
    gc.collect()
    gc.disable()
    try:
        end = time.perf_counter() + seconds
        while len(found) < rounds or time.perf_counter() < end:
            found.append({side: timer(counts[side]) for side, timer in timers.items()})
    finally:
        gc.enable()
    return found


@dataclass(frozen=True)
class Comparison:
    """The result for several sides; the first side is plugrt.

    ``seconds`` are medians per call. ``ratios`` are the median ratios of plugrt to each other side
    in the same round, ``of_least`` the ratios of the least times, ``budgets`` the largest allowed
    ratios.
    """

    name: str
    seconds: dict[str, float]
    ratios: dict[str, float]
    of_least: dict[str, float]
    budgets: dict[str, float]

    @property
    def holds(self) -> bool | None:
        """Whether all ratios are within their budgets; None without budgets."""
        if not self.budgets:
            return None
        return all(self.ratios[side] <= most for side, most in self.budgets.items())


def compare_sides(
    name: str, timers: dict[str, Timer], budgets: dict[str, float] | None = None,
    rounds: int | None = None, most: int = 1 << 30,
) -> Comparison:  # fmt: skip
    """Measures all sides in turn, at most ``most`` calls a sample; the first side is plugrt.

    Samples are short, as in `compare`. Each side has at least ``rounds`` (`ROUNDS`) samples.
    """
    seconds = ROW_SECONDS if rounds is None else 0.0
    found = measure_in_turn(timers, rounds or ROUNDS, most, seconds)
    ours = next(iter(timers))
    least = {s: min(r[s] for r in found) for s in timers}
    return Comparison(
        name,
        {s: statistics.median(r[s] for r in found) for s in timers},
        {s: statistics.median(r[ours] / r[s] for r in found) for s in timers if s != ours},
        {s: least[ours] / least[s] for s in timers if s != ours},
        budgets or {},
    )


def report_sides(title: str, rows: list[Comparison], path: Path | None) -> None:
    """Prints a column of times for each side, and the ratios of plugrt to each other side.

    The ratios are the median ratio and the ratio of the least times.
    """
    sides = list(rows[0].seconds)
    others = sides[1:]
    print(f"\n{title}")
    ratios = " ".join(f"{'/ ' + s:>12}" for s in others)
    print(f"{'':34} {' '.join(f'{s:>10}' for s in sides)} {ratios}")
    for r in rows:
        times = " ".join(f"{human(r.seconds[s]) if s in r.seconds else '':>10}" for s in sides)
        ratios = " ".join(
            f"{r.ratios[s]:6.2f} {r.of_least[s]:5.2f}" if s in r.ratios else " " * 12
            for s in others
        )
        kept = {None: "", True: "holds", False: "OVER"}[r.holds]
        budget = ", ".join(f"{s} {most:.2f}" for s, most in r.budgets.items())
        print(f"{r.name:34} {times} {ratios}  {budget} {kept}".rstrip())
    write_json(title, [{**asdict(r), "holds": r.holds} for r in rows], path)


def row(name: str, pairs: Iterable[tuple[float, float]], budget: float | None) -> Row:
    """Returns the row for pairs of seconds (plugrt, JAX)."""
    pairs = list(pairs)
    return Row(
        name,
        statistics.median(a for a, _ in pairs),
        statistics.median(b for _, b in pairs),
        statistics.median(a / b for a, b in pairs),
        min(a for a, _ in pairs) / min(b for _, b in pairs),
        budget,
    )


def environment() -> dict[str, str]:
    """Returns the conditions of the measurement; ``load``: averages over 1, 5 and 15 minutes."""
    facts = {"python": platform.python_version(), "machine": platform.platform()}
    facts["cores"] = str(os.cpu_count())
    facts["load"] = " ".join(f"{x:.1f}" for x in os.getloadavg())
    for name in ("plugrt", "jax", "jaxlib", "numpy", "xla-cpu-pjrt", "pypjrt"):
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            facts[name] = "not installed"
    return facts


def report(title: str, rows: list[Row], path: Path | None) -> None:
    """Prints the table, and writes it as JSON to a path if one is given.

    ``ratio`` is the median of the pairwise ratios, ``least`` the ratio of the least times.
    """
    print(f"\n{title}")
    print(f"{'':44} {'plugrt':>10} {'JAX':>10} {'ratio':>7} {'least':>7} {'budget':>7}")
    for r in rows:
        budget = "" if r.budget is None else f"{r.budget:.2f}"
        verdict = {None: "", True: "holds", False: "OVER"}[r.holds]
        times = f"{human(r.ours):>10} {human(r.jax):>10}"
        print(f"{r.name:44} {times} {r.ratio:7.2f} {r.of_least:7.2f} {budget:>7} {verdict}")
    write_json(title, [{**asdict(r), "holds": r.holds} for r in rows], path)


def write_json(title: str, rows: list[dict[str, Any]], path: Path | None) -> None:
    """Writes the figures and the conditions of the measurement to a path if one is given."""
    if path is not None:
        data = {"title": title, "environment": environment(), "rows": rows}
        path.write_text(json.dumps(data, indent=2) + "\n")


def human(seconds: float) -> str:
    """Returns a duration in a suitable unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.2f} {unit}"
    return f"{seconds * 1e6:.2f} µs"


def arguments(description: str | None, **extra: str) -> argparse.Namespace:
    """Parses the command line: ``--json FILE``, and an option with a help text for each extra."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    for name, text in extra.items():
        parser.add_argument(f"--{name}", help=text)
    return parser.parse_args()


def prepare(devices: int = 1) -> None:
    """Sets the environment of both sides. Call it before importing either."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["JAX_NUM_CPU_DEVICES"] = str(devices)
    os.environ["JAX_PLATFORMS"] = "cpu"
    refuse_late()


def find_library() -> Path:
    """Returns the path of the library in the wheel xla-cpu-pjrt; exits without that wheel."""
    folders = find_spec("xla_plugins")
    if folders is None or not folders.submodule_search_locations:
        raise SystemExit("this benchmark needs the library: pip install xla-cpu-pjrt==0.0.1")
    return Path(folders.submodule_search_locations[0]) / "xla_cpu_pjrt" / "xla_cpu_pjrt.so"


def prepare_library() -> Path:
    """Like `prepare`, for the library in the wheel xla-cpu-pjrt; returns its path."""
    library = find_library()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["PJRT_NAMES_AND_LIBRARY_PATHS"] = f"xla_cpu:{library}"
    os.environ["JAX_PLATFORMS"] = "xla_cpu"
    refuse_late()
    return library


def prepare_platform(name: str | None, devices: int) -> str:
    """Like `prepare`, or like `prepare_library` if ``name`` is "xla_cpu"; returns the platform."""
    if name in (None, "cpu"):
        prepare(devices)
    elif name == "xla_cpu":
        prepare_library()
        os.environ["JAX_NUM_CPU_DEVICES"] = str(devices)  # also the ratio to the library's own time
    else:
        raise SystemExit(f"there is no platform {name!r} here; there are cpu and xla_cpu")
    return name or "cpu"


def refuse_late() -> None:
    """Raises if plugrt or JAX was imported before the environment was set."""
    if "jax" in sys.modules or "plugrt" in sys.modules:
        raise RuntimeError("prepare before jax or plugrt is imported")
