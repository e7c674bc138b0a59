"""Writes docs/data/jax_needs.json: the PJRT functions without which the installed JAX fails.

The programs of ``docs/generate/hosts.py`` run under stock JAX on the NumPy backend, as a capsule
with two devices: once with all functions, and once for each function that JAX then calls, which is
unimplemented in that run. The file lists the programs that ran.
``tests/unit/sdk/conformance/test_profiles.py`` compares it with the profile ``jax`` of `plugrt
conform`.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
DATA = ROOT / "docs/data/jax_needs.json"
SECONDS = 120
PROGRAM = """
import json, os, sys, traceback
os.environ["JAX_PLATFORMS"] = "exported"
import jax as H, numpy as np
from jax._src import xla_bridge
from plugrt_sdk import BackendClient
from plugrt_sdk.export import export_capsule
from plugrt_numpy.backend import NumpyBackend
hidden, steps = json.loads(sys.argv[1])
xla_bridge.register_plugin("exported", c_api=export_capsule(
    lambda **options: BackendClient(NumpyBackend(num_devices=2)), platform="exported",
    hidden=[f"PJRT_{name}" for name in hidden],
))
for step, text in steps.items():
    try:
        exec(text, {"H": H, "np": np, "sys": sys, "x": np.float32([[1, 2], [3, 4]])})
        print("ran", step, flush=True)
    except Exception:
        traceback.print_exc(limit=1)
"""


def main() -> None:
    """Runs the programs and writes the file."""
    hosts = _load("docs/generate/hosts.py")
    name = f"JAX {version('jax')}"
    calls = json.loads(hosts.DATA.read_text("utf-8"))[name]
    own = {entry.name for entry in hosts.declarations.functions()}
    steps = {step: text for step, (_, text) in hosts.STEPS.items()}
    whole = _run((), steps)
    if whole != list(steps):
        sys.exit(f"without any refusal only these ran: {whole}")
    found = {}
    for function in sorted({f for called in calls.values() for f in called} & own):
        found[function] = _run((function,), steps)
        lost = [step for step in steps if step not in found[function]]
        print(function, "is needed by " + ", ".join(lost) if lost else "may be refused", flush=True)
    DATA.write_text(json.dumps({name: found}, indent=1) + "\n", encoding="utf-8")


def _run(hidden: tuple[str, ...], steps: dict[str, str]) -> list[str]:
    """Returns the programs that run if these functions are unimplemented."""
    given = json.dumps([hidden, steps])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, given], capture_output=True, text=True, check=False,
        timeout=SECONDS,
    )  # fmt: skip
    return [line.split()[1] for line in done.stdout.splitlines() if line.startswith("ran ")]


def _load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
