"""Runs all or some benchmarks, each in its own process; ``--json FOLDER`` writes the figures."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

NAMES = ("startup", "dispatch", "pmap", "sharded", "transfer", "callbacks", "linalg", "tracing",
         "discovery", "library", "cores", "devices", "jaxlib_floor", "export", "numpy_backend",
         "calls", "remote")  # fmt: skip


def main() -> None:
    """Runs the benchmarks in order and stops at the first failure."""
    here = Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--json", type=Path, metavar="FOLDER", help="write the figures there")
    given = parser.parse_args()
    for name in given.names:
        if name not in NAMES:
            parser.error(f"there is no benchmark {name!r}; there are {', '.join(NAMES)}")
    if given.json is not None:
        given.json.mkdir(parents=True, exist_ok=True)
    for name in given.names or NAMES:
        extra = ["--json", str(given.json / f"{name}.json")] if given.json else []
        started = time.monotonic()
        subprocess.run([sys.executable, str(here / f"{name}.py"), *extra], check=True)
        print(f"({name}: {time.monotonic() - started:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
