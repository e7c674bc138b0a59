"""Uses a library like a host, for a library that checks sizes (run as a worker).

``python -m support.strict_walk LIBRARY COUNT`` prints a line of JSON: the results, which are as
with any library, and the sizes that a `support.strict_library` has seen. With a COUNT of devices
the public functions are run; with none the functions of the C API.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import plugrt
from plugrt import array_api as xp
from plugrt import serialize_executable
from plugrt.errors import PlugrtError
from plugrt.plugins import LibraryPlugin, register
from plugrt.sharding import Mesh, NamedSharding, PartitionSpec
from support import broken_steps, strict_library


def public(name: str) -> Iterator[tuple[str, Any]]:
    """Yields (what, result) of the public functions on all devices of a backend."""
    devices = plugrt.devices(name)
    yield "devices", [(d.id, d.kind, [m.kind for m in d.memories()]) for d in devices]
    shape = plugrt.ShapeDtypeStruct((3, 4), np.dtype(np.float32))
    add_one = plugrt.jit(lambda a: plugrt.pure_callback(lambda v: np.asarray(v) + 1, shape, a) * 2)
    for device in (devices[0], devices[-1]):
        yield "statistics", _try(device.memory_stats)
        x = plugrt.device_put(np.arange(12, dtype=np.float32).reshape(3, 4), device)
        yield "put and read", np.asarray(x)
        yield "strided", np.asarray(plugrt.device_put(np.asfortranarray(np.asarray(x)), device))
        double = plugrt.jit(lambda a: xp.matmul(a, a.T) + 1)
        yield "jit", [np.asarray(double(x)) for _ in range(3)]
        compiled = double.lower(x).compile()
        yield "memory_analysis", _try(compiled.memory_analysis)
        yield "cost", sorted(_try(compiled.cost_analysis))
        saved = serialize_executable.serialize(compiled)
        yield "save, load", np.asarray(serialize_executable.deserialize_and_load(*saved)(x))
        take = plugrt.jit(lambda a: a * 2, donate_argnums=0)
        given = plugrt.device_put(np.ones(5, np.float32), device)
        yield "donate", [np.asarray(take(given)), given.is_deleted()]
        yield "callback", np.asarray(add_one(x))
        yield "copy", np.asarray(plugrt.device_put(x, devices[-1]))
    count = len(devices)
    y = np.arange(4 * count, dtype=np.float32).reshape(count, 4)
    total = plugrt.pmap(lambda a: plugrt.lax.psum(a, "i") + a, axis_name="i", devices=devices)
    yield "pmap", [np.asarray(total(y)) for _ in range(3)]
    mesh = Mesh(np.array(devices), ("x",))
    spread = plugrt.device_put(y, NamedSharding(mesh, PartitionSpec("x")))
    add_up = plugrt.jit(lambda a: a.sum(0))
    yield "jit over a mesh", [np.asarray(add_up(spread)) for _ in range(3)]


def of_the_c_api(path: str) -> Iterator[tuple[str, Any]]:
    """Yields (what, result) of the steps that use the C API by itself."""
    world = broken_steps.World(path)
    for name, run in broken_steps.STEPS.items():
        yield name, run(world)


def _try(question: Any) -> Any:
    """Returns the answer, or the library's refusal, without its path."""
    try:
        return question()
    except PlugrtError as error:
        return [type(error).__name__]


def _digest(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:12]


def main(path: str, devices: int) -> None:
    """Runs the steps, and prints their results."""
    if devices:
        options = {"cpu_device_count": devices}
        register(LibraryPlugin("walked", path, options))
        found = public("walked")
    else:
        found = of_the_c_api(path)
    results = [(what, _digest(result)) for what, result in found]
    line: dict[str, Any] = {"results": results}
    if "xla_cpu_pjrt.so" not in path:
        seen = strict_library.seen_by(path)
        line |= {"refused": seen.refused, "called": sorted(seen.called)}
    print(json.dumps(line))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
