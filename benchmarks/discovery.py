"""Measures whether 100 more installed plugins slow down a start with JAX_PLATFORMS=cpu."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import Row, arguments, report, row

MORE = 100
ROUNDS = 9


def install(folder: Path, count: int) -> None:
    """Writes ``count`` distributions with a plugin for plugrt and JAX."""
    for i in range(count):
        info = folder / f"bench_plugin_{i}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: bench-plugin-{i}\nVersion: 1.0\n"
        )
        (info / "RECORD").write_text("")
        (info / "entry_points.txt").write_text(
            f"[plugrt.plugins]\nbench{i} = bench_plugin_{i}:plugin\n"
            f"[jax_plugins]\nbench{i} = bench_plugin_{i}\n"
        )
        (folder / f"bench_plugin_{i}.py").write_text(
            "plugin = None\n\ndef initialize():\n    pass\n"
        )


def seconds(module: str, path: Path | None) -> float:
    """Returns the seconds that a new process needs to list the devices of cpu."""
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
    if path is not None:
        env["PYTHONPATH"] = str(path)
    start = time.perf_counter()
    code = f"import {module}; {module}.devices()"
    subprocess.run([sys.executable, "-c", code], check=True, env=env, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def measure() -> list[Row]:
    """Returns the rows. The second column is the same program without the additional plugins."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        install(folder, MORE)
        for module, budget in (("plugrt", 1.05), ("jax", None)):
            seconds(module, folder), seconds(module, None)
            pairs = [(seconds(module, folder), seconds(module, None)) for _ in range(ROUNDS)]
            rows.append(row(f"{module}: {MORE} more plugins / none", pairs, budget))
    return rows


if __name__ == "__main__":
    options = arguments(__doc__)
    report("Start-up with 100 more plugins (columns: with, without)", measure(), options.json)
