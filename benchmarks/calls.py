"""Measures the cost of `plugrt trace`: calls of a PJRT library with and without the tracer.

The library of xla-cpu-pjrt is loaded twice in one process, plain and traced. Its function table and
stock JAX call both in turn. Each mode of tracing has its own process: only counting, recording each
call, and recording with checks.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from typing import Any

from harness import Row, arguments, compare, prepare_library, report

MODES = {
    "counted": {"PLUGRT_TRACE_CALLS": "0"},
    "recorded": {"PLUGRT_TRACE_CALLS": "1"},
    "checked": {"PLUGRT_TRACE_CALLS": "1", "PLUGRT_TRACE_CHECK": "1"},
}


def measure(mode: str) -> list[Row]:
    """Returns the rows of the mode of tracing that the environment sets."""
    path = prepare_library()
    del os.environ["PJRT_NAMES_AND_LIBRARY_PATHS"]
    os.environ["JAX_PLATFORMS"] = "plain,traced"
    import jax
    import numpy as np
    from jax._src import xla_bridge

    from plugrt.capi.library.capsule import capsule_of, library_in
    from plugrt.capi.loading.library import load_library
    from plugrt_sdk.tracing import wrap_capsule

    plain = load_library(path)
    capsule = wrap_capsule(capsule_of(plain), "traced")
    traced = library_in(capsule, "traced")
    for name, table in (("plain", capsule_of(plain)), ("traced", capsule)):
        xla_bridge.register_plugin(name, c_api=table)
    rows = [compare(f"{mode}: one call (Client_PlatformName)", *map(caller, (traced, plain)))]
    add = jax.jit(lambda a, b: a + b)
    x, y = (
        jax.device_put(np.ones(8, np.float32), jax.devices(name)[0]) for name in ("traced", "plain")
    )
    rows += [
        compare(f"{mode}: jit add, 8 floats", lambda: add(x, x), lambda: add(y, y)),
        compare(f"{mode}: and read", lambda: np.asarray(add(x, x)), lambda: np.asarray(add(y, y))),
    ]
    return rows


def caller(library: Any) -> Any:
    """Returns a function that makes one cheap call of a library."""
    library.initialize()
    from plugrt.capi.abi.structs import new_struct

    client = library.call("Client_Create").client
    args = new_struct("struct PJRT_Client_PlatformName_Args")
    args.client = client
    function = library.slots["Client_PlatformName"]
    return lambda: function(args)


def main() -> None:
    """Prints the table: the first column is with the tracer, the second without."""
    if len(sys.argv) > 1 and sys.argv[1] in MODES:
        print(json.dumps([asdict(found) for found in measure(sys.argv[1])]))
        return
    parsed = arguments(__doc__)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for mode, variables in MODES.items():
            environ = {**os.environ, **variables, "PLUGRT_TRACE_FOLDER": folder}
            command = [sys.executable, __file__, mode]
            done = subprocess.run(command, env=environ, check=True, stdout=subprocess.PIPE)
            rows += [Row(**found) for found in json.loads(done.stdout.splitlines()[-1])]
    report("Calls of a library (columns: traced, plain)", rows, parsed.json)
    for found in rows:
        if "one call" in found.name:
            print(f"{found.name}: {1e9 * (found.ours - found.jax):.0f} ns more")


if __name__ == "__main__":
    main()
