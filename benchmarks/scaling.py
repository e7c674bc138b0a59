"""Measures a call over a mesh of 1 to 512 virtual cpu devices, with 1 to 64 arguments.

Each number of devices has its own process. Figures are CPU time of all threads, the least of
several calls: two cores cannot run 512 virtual devices at once, and CPU time excludes other work on
the machine. Beside plugrt's call are JAX's call and jaxlib's launches alone, one per device: of one
executable, of a few in turn, and of one executable per device. A run needs minutes and gigabytes.
``docs/generate/scaling.py`` draws and describes the output of ``--json FILE``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from harness import arguments, prepare, write_json

DEVICES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
ARGUMENTS = (1, 4, 16, 64)
ROUNDS = 12
FEW = 8
"""The number of executables that jaxlib launches in turn."""


def least(call: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Returns the least CPU seconds of a call."""
    call()
    found = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def measure(count: int) -> dict[str, float]:
    """Returns the CPU seconds of each kind of call on ``count`` devices."""
    prepare(count)
    import numpy as np

    import plugrt
    from plugrt import lax
    from plugrt.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(plugrt.devices(), "x")
    parts = NamedSharding(mesh, PartitionSpec("x"))
    host = np.ones((count, 4), np.float32)
    given = [plugrt.device_put(host, parts) for _ in range(max(ARGUMENTS))]
    each = plugrt.jit(lambda *values: [value * 2 for value in values])
    total = plugrt.jit(
        plugrt.shard_map(
            lambda v: lax.psum(v, "x"), mesh=mesh, in_specs=parts.spec, out_specs=PartitionSpec()
        )
    )
    found = {
        f"call with {n}": least(lambda n=n: plugrt.block_until_ready(each(*given[:n])))
        for n in ARGUMENTS
    }
    # As many launches, all of one executable: their time does not depend on the number of
    # executables.
    here, one = plugrt.device_put(host[0]), plugrt.jit(lambda value: [value * 2])
    found["calls of one device"] = least(
        lambda: plugrt.block_until_ready([one(here) for _ in range(count)])
    )
    found |= measure_jax(count, host)
    found["all-reduce"] = least(lambda: total(given[0]).block_until_ready())
    found["device_put"] = least(lambda: plugrt.device_put(host, parts).block_until_ready())
    found["np.asarray"] = least(lambda: np.asarray(each(given[0])[0])) - found["call with 1"]
    found["a new sharding"] = least(
        lambda: NamedSharding(Mesh(plugrt.devices(), "x"), PartitionSpec("x")).devices_indices_map(
            (count, 4)
        )
    )
    return found


def measure_jax(count: int, host: Any) -> dict[str, float]:
    """Returns the CPU seconds of JAX's call with one argument on ``count`` devices, and of jaxlib's
    launches.
    """
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    parts = NamedSharding(Mesh(np.array(jax.devices()), "x"), PartitionSpec("x"))
    given, each = jax.device_put(host, parts), jax.jit(lambda value: [value * 2])
    found = {"JAX: call with 1": least(lambda: jax.block_until_ready(each(given)))}
    ready = []
    for device in jax.devices():
        here = jax.device_put(host[0], device)
        ready.append((jax.jit(lambda v: [v * 2]).lower(here).compile().runtime_executable(), here))
    for name, among in (
        ("jaxlib: one executable", 1),
        ("jaxlib: a few in turn", min(FEW, count)),
        ("jaxlib: one for each", count),
    ):
        found[name] = least(lambda among=among: launch_all(ready, among, count))
    return found


def launch_all(ready: Sequence[tuple[Any, Any]], among: int, count: int) -> None:
    """Launches the first executables in turn, ``count`` times in all, and waits for the results."""
    left = [
        executable.execute_sharded([here]).disassemble_into_single_device_arrays()[0][0]
        for executable, here in (ready[i % among] for i in range(count))
    ]
    for array in left:
        array.block_until_ready()


def main() -> None:
    """Prints a line for each number of devices."""
    options = arguments(__doc__, devices="measure this number in this process, and print JSON")
    if options.devices:
        print(json.dumps(measure(int(options.devices))))
        return
    rows = []
    for count in DEVICES:
        done = subprocess.run(
            [sys.executable, __file__, "--devices", str(count)],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        seconds = json.loads(done.stdout.splitlines()[-1])
        rows.append({"devices": count, "seconds": seconds, "rounds": ROUNDS, "few": FEW})
        print(count, *(f"{name}: {1e6 * value:.0f} µs" for name, value in seconds.items()))
    write_json("Growth over virtual cpu devices", rows, options.json)


if __name__ == "__main__":
    main()
