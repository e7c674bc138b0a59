"""Measures how long a new process needs to import plugrt and list devices, beside a floor and JAX.

The floor imports NumPy, loads jaxlib or the library xla-cpu-pjrt, and creates a client. Modules are
compiled before, as in an installed package.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from floor import compile_floor

from harness import Row, arguments, find_library, report, row

ROUNDS = 5
_DEVICES = "import {0}; {0}.devices()"
_CALL = "import {0}; {0}.jit(lambda x: x + 1)(1.0).block_until_ready()"
_JAXLIB = "import numpy; from jaxlib import _jax; _jax.get_tfrt_cpu_client(asynchronous=True)"
_LIBRARY = "import numpy, ctypes; ctypes.CDLL({!r}).floor_open({!r})"


def seconds(code: str, environment: dict[str, str]) -> float:
    """Returns the seconds that a new process needs for ``code``."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, env=environment)
    return time.perf_counter() - start


def measure(folder: Path) -> list[Row]:
    """Returns a row for each question; ``folder`` is for compiled modules and the C program."""
    cpu = {**os.environ, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3",
           "PYTHONPYCACHEPREFIX": str(folder)}  # fmt: skip
    cpu.pop("PYTHONDONTWRITEBYTECODE", None)
    file = find_library()
    library = {**cpu, "JAX_PLATFORMS": "xla_cpu", "PJRT_NAMES_AND_LIBRARY_PATHS": f"xla_cpu:{file}"}
    in_c = _LIBRARY.format(str(compile_floor(folder)), str(file).encode())
    devices, jax_devices = _DEVICES.format("plugrt"), _DEVICES.format("jax")
    rows = []
    for name, environment, code, other, budget in (
        ("import, select cpu, list devices", cpu, devices, jax_devices, 0.5),
        ("import, select cpu, list devices: to the floor", cpu, devices, _JAXLIB, 1.35),
        ("import, select a library, list devices", library, devices, jax_devices, 0.5),
        ("import, select a library, list devices: to the floor", library, devices, in_c, 1.35),
        ("the same on cpu, and one jitted call", cpu, _CALL.format("plugrt"), _CALL.format("jax"),
         None),
        ("import alone", cpu, "import plugrt", "import jax", None),
    ):  # fmt: skip
        for each in (code, other):
            seconds(each, environment)  # fills the disk cache
        pairs = [(seconds(code, environment), seconds(other, environment)) for _ in range(ROUNDS)]
        rows.append(row(name, pairs, budget))
    return rows


if __name__ == "__main__":
    options = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        report("Start-up of a fresh process", measure(Path(folder)), options.json)
