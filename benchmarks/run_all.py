"""Runs every benchmark, each in a process of its own; ``--json FOLDER`` writes the figures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

NAMES = ("startup", "dispatch", "pmap", "transfer", "callbacks", "tracing", "discovery", "library",
         "export", "numpy_backend", "calls")  # fmt: skip


def main() -> None:
    """Runs them in order and stops at the first that fails."""
    here = Path(__file__).parent
    folder = Path(sys.argv[sys.argv.index("--json") + 1]) if "--json" in sys.argv else None
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        extra = ["--json", str(folder / f"{name}.json")] if folder else []
        subprocess.run([sys.executable, str(here / f"{name}.py"), *extra], check=True)


if __name__ == "__main__":
    main()
