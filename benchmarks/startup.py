"""How long a fresh process takes to import, to select cpu and to list the devices."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from harness import Row, arguments, report, row

QUESTIONS = {
    "import, select cpu, list devices": ("devices()", 0.5),
    "the same, and one jitted call": ("jit(lambda x: x + 1)(1.0).block_until_ready()", None),
    "import alone": ("__name__", None),
}
ROUNDS = 5


def seconds(module: str, expression: str) -> float:
    """Returns how long a fresh process takes to import ``module`` and evaluate on it."""
    code = f"import {module}; {module}.{expression}"
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=env)
    return time.perf_counter() - start


def measure() -> list[Row]:
    """Returns a row for each question."""
    rows = []
    for name, (expression, budget) in QUESTIONS.items():
        for module in ("plugrt", "jax"):
            seconds(module, expression)  # fills the disk cache
        pairs = [(seconds("plugrt", expression), seconds("jax", expression)) for _ in range(ROUNDS)]
        rows.append(row(name, pairs, budget))
    return rows


if __name__ == "__main__":
    options = arguments(__doc__)
    report("Start-up of a fresh process", measure(), options.json)
