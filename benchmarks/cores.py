"""Runs the calls of dispatch.py with the compiled core and in Python, on cpu and on a PJRT library.

Each of the four combinations has its own process, in which JAX and plugrt make the calls in turn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import Row, arguments, human, write_json

PLATFORMS = ("cpu", "xla_cpu")
CORES = ("c", "python")
Budgets = dict[str, tuple[float | None, float | None]]
"""The largest allowed ratio to JAX with the core, by call: on cpu and on a library.

The design states the figures. Other benchmarks that measure one of these calls get its
budget from here, by `judge`.
"""

BUDGETS: Budgets = {
    "jitted call, 2 arguments": (0.95, 0.4),
    "jitted call, 32 arguments": (0.65, 0.35),
    "jitted call, 32 results": (1.1, 0.55),
    "NumPy + array": (0.9, 0.5),
    "two NumPy": (0.8, 0.5),
    "two NumPy of 64 kB, awaited": (1.0, 1.0),
    "Python scalar + array": (0.9, 0.5),
    "a new Python float + array": (0.9, 0.5),
    "dict of 2": (0.9, 0.6),
    "namedtuple": (0.9, 0.6),
    "registered dataclass": (0.9, 0.6),
    "None beside an array": (0.95, 0.6),
    "one keyword": (0.95, 0.6),
    "static by name": (0.95, 0.6),
    "a static tuple": (0.95, 0.6),
    "donate one": (1.0, 0.6),
    "donate one, NumPy beside it": (1.0, 0.6),
    "call and wait": (1.0, 0.6),
    "first read": (1.2, 0.6),
    "tree of 40 in and out": (0.9, 0.6),
    "compiled object": (1.0, None),
    "device_put of 16 B": (0.3, 0.1),
    "device_put of 64 MB": (0.4, 0.4),
    "list(x)": (0.7, 0.7),
    "eager x + x": (0.8, 0.4),
    "eager x.sum()": (1.0, 1.0),
    "first call of a new function (13 operations)": (0.95, 0.9),
}


def limit(name: str, ratios: Mapping[str, float], budgets: Budgets, platform: str) -> float | None:
    """Returns the budget of a call on a platform: at least 1.05 of its bare launch, if measured."""
    most = budgets.get(name, (None, None))[PLATFORMS.index(platform)]
    if most is None:
        return None
    return max(most, 1.05 * ratios.get(f"{name}: the launch alone", 0.0))


def judge(rows: list[Row], platform: str, budgets: Budgets) -> list[Row]:
    """Returns the rows with the budgets of their calls on a platform; other rows are unchanged."""
    ratios = {row.name: row.ratio for row in rows}
    found = [limit(row.name, ratios, budgets, platform) for row in rows]
    return [
        row if most is None else replace(row, budget=most)
        for row, most in zip(rows, found, strict=True)
    ]


def measure(script: str, platform: str, core: str) -> dict[str, dict[str, Any]]:
    """Returns the rows of a benchmark on a platform with a core, by name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.json"
        where = Path(__file__).with_name(script)
        command = [sys.executable, str(where), "--platform", platform, "--json", str(path)]
        subprocess.run(command, check=True, env={**os.environ, "PLUGRT_CORE": core})
        return {row["name"]: row for row in json.loads(path.read_text())["rows"]}


def compare(
    found: dict[tuple[str, str], dict[str, dict[str, Any]]], budgets: Budgets
) -> list[dict[str, Any]]:
    """Returns a row for each call and platform: JAX's seconds, and the ratios of both cores."""
    rows = []
    for platform in PLATFORMS:
        ratios = {name: row["ratio"] for name, row in found[platform, "c"].items()}
        for name, in_c in found[platform, "c"].items():
            budget = limit(name, ratios, budgets, platform)
            ratio = in_c["ratio"]
            rows.append(
                {
                    "name": name,
                    "platform": platform,
                    "jax": in_c["jax"],
                    "c": ratio,
                    "least": in_c["of_least"],
                    "python": found[platform, "python"][name]["ratio"],
                    "budget": budget,
                    "holds": None if budget is None else ratio <= budget,
                }
            )
    return rows


def report(script: str, title: str, budgets: Budgets, path: Path | None) -> None:
    """Measures the four combinations, prints the table, and writes it to a path if one is given."""
    rows = compare({(p, c): measure(script, p, c) for p in PLATFORMS for c in CORES}, budgets)
    print(f"\n{title}")
    print(f"{'':48} {'':8} {'JAX':>10} {'C':>6} {'least':>6} {'Python':>6} {'budget':>6}")
    for row in rows:
        budget = "" if row["budget"] is None else f"{row['budget']:.2f}"
        verdict = {None: "", True: "holds", False: "OVER"}[row["holds"]]
        print(
            f"{row['name']:48} {row['platform']:8} {human(row['jax']):>10} {row['c']:6.2f} "
            f"{row['least']:6.2f} {row['python']:6.2f} {budget:>6} {verdict}".rstrip()
        )
    write_json(title, rows, path)


if __name__ == "__main__":
    report(
        "dispatch.py",
        "Calls in the compiled core and in Python, divided by JAX's",
        BUDGETS,
        arguments(__doc__).json,
    )
