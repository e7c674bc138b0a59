"""The child of test_ordered_effects_over_devices.py: ordered `io_callback` on plugrt or on JAX.

``python -m cpu.transforms.ordered_effects HOST``, HOST is ``jax`` or ``plugrt``. Prints a line of
JSON for each way to call, sequence of meshes and number of calls: the calls of `note` in order. If
each device calls, it prints a list for each, since they call at the same time.
"""

from __future__ import annotations

import faulthandler
import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from support.effort import some_of

HOST = sys.argv[1]
if HOST == "jax":
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax as host
    from jax import lax
    from jax.experimental import io_callback
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    constrain = lax.with_sharding_constraint
else:
    import plugrt as host  # type: ignore[no-redef]
    from plugrt import io_callback, lax  # type: ignore[no-redef,assignment]
    from plugrt.sharding import Mesh, NamedSharding  # type: ignore[no-redef,assignment]
    from plugrt.sharding import PartitionSpec as P  # type: ignore[no-redef,assignment]

    constrain = host.with_sharding_constraint  # type: ignore[attr-defined]

A = np.arange(8, dtype=np.float32)
INDEX = host.ShapeDtypeStruct((), "int32")
MESHES = {
    "one mesh": [(0, 1, 2, 3)],
    "the other order": [(0, 1), (1, 0)],
    "other devices": [(0, 1), (2, 3)],
    "other numbers": [(0, 1, 2, 3), (3,), (1, 2), (0,), (3, 2, 1, 0)],
    "one device each": [(0,), (1,), (2,)],
}
COUNTS = (1, 2, 7)

_lock = threading.Lock()
_seen: list[list[int]] = []


def note(*values: Any) -> None:
    """Records its argument, after a pause that lets other calls overtake."""
    time.sleep(0.001)
    with _lock:
        _seen.append([int(value) for value in values])


def _note_and_return(*values: Any) -> Any:
    note(*values)
    return np.int32(values[-1])


def call(*values: Any) -> Any:
    """Calls `note` from a program, in order; returns the last argument."""
    return io_callback(_note_and_return, INDEX, *values, ordered=True)


def tell(*values: Any) -> None:
    """Like `call`, without a result."""
    io_callback(note, None, *values, ordered=True)


def _late(x: Any) -> Any:
    return (x.sum() * 0).astype("int32")


def _results(x: Any, n: Any) -> Any:
    return x + call(n + _late(x), 0) + call(n, 1)


def _no_results(x: Any, n: Any) -> Any:
    tell(n + _late(x), 0)
    tell(n, 1)
    return x


def _loops(x: Any, n: Any) -> Any:
    def step(i: Any, y: Any) -> Any:
        tell(n, i)
        return lax.cond(i < 1, lambda z: z + call(n, 10), lambda z: (tell(n, 11), z)[1], y)

    x = lax.fori_loop(0, 3, step, x)
    x, _ = lax.scan(lambda c, i: (c + call(n, 20 + i), None), x, np.arange(2, dtype=np.int32))
    return lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1] + call(n, s[0])), (0, x))[1]


def _inner(x: Any, n: Any) -> Any:
    add = host.jit(lambda y, k: y + call(n, k))
    return add(add(x, np.int32(0)), np.int32(1))


def _parts(x: Any, n: Any) -> Any:
    index = lax.axis_index("x")
    tell(index, n, 0)
    return x + call(index, n, 1)


def _parts_in_step(x: Any, n: Any) -> Any:
    def step(i: Any, y: Any) -> Any:
        tell(lax.axis_index("x"), n, i)
        return y + lax.psum(y, "x")

    return lax.fori_loop(0, 3, step, x)


def _parts_inner(x: Any, n: Any) -> Any:
    add = host.jit(lambda y, k: y + call(lax.axis_index("x"), n, k))
    return lax.cond(n > -1, lambda y: add(add(y, np.int32(0)), np.int32(1)), lambda y: y, x)


WHOLE: dict[str, Callable[[Any, Any], Any]] = {
    "results": _results, "no results": _no_results, "loops": _loops, "inner": _inner,
    "constraint": _results, "ahead of time": _results,
}  # fmt: skip
PARTS: dict[str, Callable[[Any, Any], Any]] = {
    "parts": _parts, "parts in step": _parts_in_step, "parts, inner": _parts_inner,
    "parts by themselves": _parts,
}  # fmt: skip


def place(ids: Sequence[int]) -> Any:
    """Returns an array divided over some devices, and its sharding."""
    found = host.devices()
    mesh = Mesh(np.array([found[i] for i in ids]), ("x",))
    return host.device_put(A, NamedSharding(mesh, P("x"))), mesh


@cache
def program(way: str, ids: tuple[int, ...]) -> Callable[[Any], Any]:
    """Returns a function of the call's number, which runs one way's program over some devices."""
    x, mesh = place(ids)
    if way in PARTS:
        mapped = host.shard_map(
            PARTS[way], mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"), check_vma=False
        )
        mapped = mapped if way == "parts by themselves" else host.jit(mapped)
        return lambda n: mapped(x, n)
    jitted = host.jit(WHOLE[way])
    if way == "constraint":
        sharding = NamedSharding(mesh, P("x"))
        jitted = host.jit(lambda y, n: WHOLE[way](constrain(y, sharding), n))
        return lambda n: jitted(A, n)
    if way == "ahead of time":
        compiled = jitted.lower(x, np.int32(0)).compile()
        return lambda n: compiled(x, n)
    return lambda n: jitted(x, n)


def run(way: str, meshes: str, count: int) -> Any:
    """Launches ``count`` times; returns the calls of all devices or of each, and results' sums."""
    _seen.clear()
    results = []
    for n, ids in zip(range(count), itertools.cycle(MESHES[meshes]), strict=False):
        results.append(program(way, ids)(np.int32(n)))
    host.effects_barrier()
    sums = [float(np.asarray(x).sum()) for x in results]
    if way not in PARTS:
        return _seen[:], sums
    devices = sorted({device for device, *_ in _seen})
    return [[rest for own, *rest in _seen if own == device] for device in devices], sums


def main() -> None:
    """Prints a line of JSON for each case."""
    faulthandler.dump_traceback_later(240, exit=True)
    cases = [*itertools.product([*WHOLE, *PARTS], MESHES, COUNTS)]
    for way, meshes, count in some_of(cases, 40):
        print(json.dumps([way, meshes, count, run(way, meshes, count)]), flush=True)


if __name__ == "__main__":
    main()
