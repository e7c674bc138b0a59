"""Makes the chapter of ``docs/capi-coverage.md`` on hosts: the functions that each calls.

It is made from ``docs/data/hosts.json``. ``python docs/generate/hosts.py record`` writes into
that what plugrt, and the JAX and the PyTorch/XLA that are installed beside it, call today (or those
of them that the command names): `plugrt trace` runs the programs below on the NumPy backend,
exported as a library with two devices.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from plugrt.capi.abi import declarations

ROOT = Path(__file__).parents[2]
DATA = ROOT / "docs/data/hosts.json"
_ARRAYS = (
    "y = H.device_put(x, H.devices()[1]); y.block_until_ready(); np.asarray(y); "
    "np.asarray(H.device_put(y, H.devices()[0])); y.delete()"
)
_SHARDING = (
    "H.devices(); hasattr(H.sharding, 'Mesh') or sys.exit()\n"  # plugrt has no meshes yet
    "mesh = H.sharding.Mesh(np.array(H.devices()), ('i',)); "
    "spec = H.sharding.NamedSharding(mesh, H.sharding.PartitionSpec('i')); "
    "np.asarray(H.jit(lambda x: x @ x.T)(H.device_put(x, spec)))"
)
_AHEAD = """
c = H.jit(lambda x: x @ x).lower(x).compile()
for ask in (c.cost_analysis, c.memory_analysis, c.as_text):
    try:
        ask()
    except Exception as error:  # plugrt raises where the backend has no answer, JAX returns None
        assert "UNIMPLEMENTED" in str(error), error
"""
_FAILURE = """
try:
    np.asarray(H.jit(lambda x: H.lax.broadcast(x, (1 << 22, 1 << 22)) + 1)(x))
except Exception as error:
    assert "RESOURCE_EXHAUSTED" in str(error), error
else:
    sys.exit("there was memory for it")
"""
STEPS: Mapping[str, tuple[str, str]] = {
    "start": ("lists the devices", "H.devices()"),
    "arrays": (
        "puts an array on a device, waits, copies it to another, reads both and deletes the first",
        _ARRAYS,
    ),
    "jit": (
        "compiles a function, calls it twice and reads the result",
        "f = H.jit(lambda x: x @ x + 1); np.asarray(f(f(x)))",
    ),
    "donation": (
        "calls a function with an array that it may write to",
        "f = H.jit(lambda x: x + 1, donate_argnums=0); np.asarray(f(H.device_put(x)))",
    ),
    "pmap": (
        "runs on two devices, with a sum over both",
        "np.asarray(H.pmap(lambda x: H.lax.psum(x, 'i'), 'i')(x))",
    ),
    "sharding": ("multiplies a matrix that is divided between both devices (JAX alone)", _SHARDING),
    "ahead": (
        "compiles without calling; asks for costs, memory needs and the optimised program",
        _AHEAD,
    ),
    "failure": ("calls a function for whose result there is no memory", _FAILURE),
}
"""Step to (what it does, the program); H is the host: plugrt or JAX."""

TORCH_BEGIN = """
import os, torch, torch_xla
from torch_xla.experimental import plugins
class Host(plugins.DevicePlugin):
    def library_path(self):
        return os.environ["PJRT_LIBRARY_PATH"]
plugins.register_plugin("HOST", Host())
x, d = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch_xla.device()
"""
TORCH_STEPS: Mapping[str, str] = {
    "start": "",
    "arrays": "y = x.to(d); y.cpu(); del y",
    "jit": "y = x.to(d); f = lambda x: x @ x + 1; f(f(y)).cpu()",
    "donation": "y = x.to(d); y += 1; torch_xla.sync(); y += 1; y.cpu()",
}
"""Step to the program of PyTorch/XLA, on one device; the other steps it does not have."""


def trace(program: str, library: Path) -> dict[str, bool]:
    """Returns the functions that a program calls; whether each call of one succeeded."""
    result = library.with_name("trace.json")
    plugrt = str(Path(sys.executable).parent / "plugrt")
    command = [plugrt, "trace", "--library", str(library), "--format", "json", "-o", str(result)]
    options = {
        "JAX_PJRT_CLIENT_CREATE_OPTIONS": "num_devices:2",
        "PLUGRT_CACHE_DIR": str(library.parent),
        "PJRT_DEVICE": "HOST",
        "XLA_STABLEHLO_COMPILE": "1",  # PyTorch/XLA hands over HLO otherwise
    }
    subprocess.run(
        [*command, "--", sys.executable, "-c", program],
        env={**os.environ, **options}, check=True, stdout=subprocess.DEVNULL, cwd=library.parent,
    )  # fmt: skip
    found: dict[str, bool] = {}
    for process in json.loads(result.read_text())["processes"]:
        for name, counts in process["functions"].items():
            found[name] = found.get(name, True) and not counts["errors"]
    return found


def programs(host: str) -> dict[str, str]:
    """Returns the program of each step of a host, by the name of its package."""
    if host == "torch_xla":
        return {step: TORCH_BEGIN + text for step, text in TORCH_STEPS.items()}
    begin = f"import sys, {host} as H, numpy as np; x = np.float32([[1, 2], [3, 4]])\n"
    return {step: begin + texts[1] for step, texts in STEPS.items()}


def record(hosts: Sequence[str]) -> None:
    """Writes what hosts call into the file of records."""
    from plugrt_sdk.export import export_library

    data = json.loads(DATA.read_text()) if DATA.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        library = export_library("numpy", Path(folder) / "libpjrt_host.so")
        for host in hosts:
            steps = {step: trace(text, library) for step, text in programs(host).items()}
            name = NAMES[host] if host == "plugrt" else f"{NAMES[host]} {version(host)}"
            data[name] = {step: dict(sorted(found.items())) for step, found in steps.items()}
    DATA.write_text(json.dumps(dict(sorted(data.items())), indent=1) + "\n", encoding="utf-8")


NAMES = {"plugrt": "plugrt", "jax": "JAX", "torch_xla": "PyTorch/XLA"}
"""Package to the name of the host."""


INTRODUCTION = """\
# What hosts need

<!-- generated by docs/generate/hosts.py; do not edit -->

Each host of a plugin calls some of the {functions} functions of the PJRT C API. The table says
which, and what for: what a plugin in C++ has to write first, and what can stay a stub. A backend
in Python need not care: the export has all of them.

It is made from traces of real runs (`plugrt trace`), on the NumPy backend exported as a library
with two devices. The library reports API 0.{minor}: a host asks less of one that reports an older
version. PyTorch/XLA uses one device, and has the steps start, arrays, jit and donation (an array
that is added to in place). Other programs may call more. A cell names the first of these steps that
calls the function:

"""
AFTER = """
In brackets: the backend refused it (UNIMPLEMENTED, for example), and the host went on.

No step calls the other {unused} functions of the API's own table.

`python docs/generate/hosts.py record` adds the versions of JAX and PyTorch/XLA that are installed
beside plugrt-sdk.
"""


def page() -> str:
    """Returns the page's text."""
    data = json.loads(DATA.read_text(encoding="utf-8"))
    hosts = sorted(data, key=_newest_first)
    order = [entry.name for entry in declarations.functions()]
    named = {name for steps in data.values() for found in steps.values() for name in found}
    rows = [name for name in order if name in named] + sorted(named - set(order))
    lines = [f"| {step} | {texts[0]} |" for step, texts in STEPS.items()]
    steps = "\n".join(["| step | what it does |", "| --- | --- |", *lines])
    table = [f"| function | {' | '.join(hosts)} |", f"| --- |{' --- |' * len(hosts)}"]
    for name in rows:
        cells = " | ".join(_first_step(data[host], name) for host in hosts)
        table.append(f"| `PJRT_{name}` | {cells} |")
    counts = ", ".join(
        f"{len({n for found in data[host].values() for n in found})} by {host}" for host in hosts
    )
    total = f"\n\nCalled in all steps together: {counts}.\n\n"
    after = AFTER.format(unused=len(set(order) - named))
    body = steps + total + "\n".join(table) + "\n" + after
    return INTRODUCTION.format(functions=len(order), minor=declarations.API_MINOR) + body


def _newest_first(host: str) -> tuple[int, ...]:
    """The key by which plugrt comes first, then JAX, its newest version first, then others."""
    place = [*NAMES.values()].index(host.split()[0])
    return (place, *(-int(number) for number in re.findall(r"\d+", host)))


def _first_step(steps: Mapping[str, Any], name: str) -> str:
    first = next((step for step in STEPS if name in steps.get(step, ())), "")
    refused = first and not any(found.get(name) for found in steps.values())
    return f"({first})" if refused else first


if __name__ == "__main__":
    if sys.argv[1:2] == ["record"]:
        record(sys.argv[2:] or [name for name in NAMES if find_spec(name) is not None])
