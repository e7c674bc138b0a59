"""Measures programs over a mesh of four virtual devices, and transfers to and within it.

Runs on the cpu plugin, or with ``--platform xla_cpu`` on a PJRT library. `devices.py` runs it for
each platform and core. Rows "the launch alone" compare the backend's launch and the wait for its
results with JAX's whole call: no host can be faster (launches_alone.py). Call, launch and JAX's
call are measured in turn. Rows "jaxlib's copies alone" compare jaxlib's copies of the
two parts that a reshard moves; "memcpy" compares NumPy's copies of these parts, or of all parts of
a device_put, to memory in use. On a library with fewer cores than two threads per device, plugrt's
client has two threads per device and JAX's one (`plugrt.base.xla_environment.reserve_threads`), so
the launch alone is measured with both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from harness import (
    Row,
    Timer,
    arguments,
    compare,
    measure_in_turn,
    prepare_platform,
    report,
    row,
    timed,
)

DEVICES = 4
MEGABYTES = 64
OPTIONS = arguments(__doc__, platform="cpu, or xla_cpu: the library of xla-cpu-pjrt")
PLATFORM = prepare_platform(OPTIONS.platform, DEVICES)

import cores  # noqa: E402
import devices  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402
from launches_alone import launch_alone, launch_from_c  # noqa: E402

import plugrt  # noqa: E402
from plugrt import lax  # noqa: E402
from plugrt_cpu import adapter  # noqa: E402

AXES = ("x", "y")
OURS = plugrt.make_mesh((2, 2), AXES)
THEIRS = jax.sharding.Mesh(np.array(jax.devices()[:DEVICES]).reshape(2, 2), AXES)


def over(*entries: Any) -> tuple[Any, Any]:
    """Returns shardings of plugrt and JAX over these axes."""
    spec = plugrt.sharding.PartitionSpec(*entries)
    theirs = jax.sharding.PartitionSpec(*entries)
    return (
        plugrt.sharding.NamedSharding(OURS, spec),
        jax.sharding.NamedSharding(THEIRS, theirs),
    )


def put(host: Any, *entries: Any) -> tuple[Any, Any]:
    """Puts a host array by plugrt and by JAX."""
    ours, theirs = over(*entries)
    return plugrt.device_put(host, ours), jax.device_put(host, theirs)


def awaited(name: str, ours: Callable[[], Any], theirs: Callable[[], Any]) -> Row:
    """Returns the row of two calls with the wait for their results."""
    return compare(
        name,
        lambda: plugrt.block_until_ready(ours()),
        lambda: jax.block_until_ready(theirs()),
    )


def beside(sides: dict[str, Timer], theirs: Callable[[], Any]) -> list[Row]:
    """Returns a row for each side by name: all ratios use the same times of JAX's call."""
    found = measure_in_turn({**sides, "JAX": timed(lambda: jax.block_until_ready(theirs()))})
    return [row(name, [(r[name], r["JAX"]) for r in found], None) for name in sides]


def launched(name: str, theirs: Callable[[], Any], function: Any, *values: Any) -> list[Row]:
    """Returns the rows of a call and of its launch alone."""
    sides = {
        name: timed(lambda: plugrt.block_until_ready(function(*values))),
        f"{name}: the launch alone": launch_alone(PLATFORM, function, *values),
    }
    if PLATFORM != "cpu":
        alone = launch_from_c(function, *values, reserved=False)
        sides[f"{name}: the launch alone, a thread a device"] = alone
    return beside(sides, theirs)


def measure_calls() -> list[Row]:
    """Returns the rows of programs."""
    host = np.ones((8, 8), np.float32)
    x, jx = put(host, "x", "y")
    a, ja = put(host, None, "x")
    b, jb = put(host, "x")
    whole, jwhole = put(host)
    plus, jplus = plugrt.jit(lambda v: v + 1), jax.jit(lambda v: v + 1)
    add, jadd = plugrt.jit(lambda v, w: v + w), jax.jit(lambda v, w: v + w)
    dot, jdot = plugrt.jit(lambda v, w: v @ w), jax.jit(lambda v, w: v @ w)
    many, jmany = plugrt.jit(lambda *v: [w * 2 for w in v]), jax.jit(lambda *v: [w * 2 for w in v])
    line = over("x")
    total = plugrt.jit(
        plugrt.shard_map(
            lambda v: lax.psum(v, "x"),
            mesh=OURS,
            in_specs=line[0].spec,
            out_specs=over()[0].spec,
        )
    )
    jtotal = jax.jit(
        jax.shard_map(
            lambda v: jax.lax.psum(v, "x"),
            mesh=THEIRS,
            in_specs=line[1].spec,
            out_specs=over()[1].spec,
        )
    )
    each = plugrt.pmap(lambda v: lax.psum(v, "i"), "i")
    jeach = jax.pmap(lambda v: jax.lax.psum(v, "i"), "i")
    rows = plugrt.device_put(host[:DEVICES], plugrt.sharding.PmapSharding(plugrt.devices()))
    jrows = jax.pmap(lambda v: v)(host[:DEVICES])
    found = [
        awaited("x + 1", lambda: plus(x), lambda: jplus(jx)),
        awaited("x + 1, without jit", lambda: x + 1, lambda: jx + 1),
        awaited("x + y, y from NumPy", lambda: add(x, host), lambda: jadd(jx, host)),
        awaited("x + y, y whole on each device", lambda: add(x, whole), lambda: jadd(jx, jwhole)),
        awaited("16 arguments, 16 results", lambda: many(*[x] * 16), lambda: jmany(*[jx] * 16)),
    ]
    found += launched("a @ b, one all-reduce", lambda: jdot(ja, jb), dot, a, b)
    found += launched("psum in shard_map", lambda: jtotal(jb), total, b)
    found += launched("psum in pmap", lambda: jeach(jrows), each, rows)
    return found


def measure_forms() -> list[Row]:
    """Returns the rows of common forms of calls, of jit over the mesh and of pmap."""
    host = np.ones((8, 8), np.float32)
    x, jx = put(host, "x", "y")
    tiles = over("x", "y")
    add = plugrt.jit(lambda v, w: v + w, in_shardings=tiles[0])
    jadd = jax.jit(lambda v, w: v + w, in_shardings=tiles[1])
    free, jfree = plugrt.jit(lambda v, w: v + w), jax.jit(lambda v, w: v + w)
    tree, jtree = ({"v": a, "w": a} for a in (x, jx))
    both = plugrt.jit(lambda d: {"sum": d["v"] + d["w"], "difference": d["v"] - d["w"]})
    jboth = jax.jit(lambda d: {"sum": d["v"] + d["w"], "difference": d["v"] - d["w"]})
    plus, jplus = plugrt.pmap(lambda v, w: v + w), jax.pmap(lambda v, w: v + w)
    each = host[:DEVICES]
    rows, jrows = plus(each, each), jplus(each, each)
    pboth = plugrt.pmap(lambda d: d["v"] + d["w"])
    jpboth = jax.pmap(lambda d: d["v"] + d["w"])
    return [
        awaited("jit: two NumPy, in_shardings", lambda: add(host, host), lambda: jadd(host, host)),
        awaited("jit: one keyword", lambda: free(x, w=x), lambda: jfree(jx, w=jx)),
        awaited("jit: dict of 2 in and out", lambda: both(tree), lambda: jboth(jtree)),
        awaited("jit: donate one", donating(plugrt, "jit", x), donating(jax, "jit", jx)),
        awaited("pmap: two NumPy", lambda: plus(each, each), lambda: jplus(each, each)),
        awaited("pmap: one keyword", lambda: plus(rows, w=rows), lambda: jplus(jrows, w=jrows)),
        awaited(
            "pmap: dict of 2",
            lambda: pboth({"v": rows, "w": rows}),
            lambda: jpboth({"v": jrows, "w": jrows}),
        ),
        awaited("pmap: donate one", donating(plugrt, "pmap", rows), donating(jax, "pmap", jrows)),
    ]


def donating(package: Any, transform: str, start: Any) -> Callable[[], Any]:
    """Returns a call that donates its first argument, the result of the last call."""
    step = getattr(package, transform)(lambda v, w: v + w, donate_argnums=0)
    state = [getattr(package, transform)(lambda v: v * 0)(start)]

    def call() -> Any:
        state[0] = step(state[0], start)
        return state[0]

    return call


def measure_moves() -> list[Row]:
    """Returns the rows of puts and of moves from one sharding to another."""
    small = np.ones((8, 8), np.float32)
    large = np.ones((MEGABYTES, 1 << 18), np.float32)
    rows = []
    tiles, swapped = over("x", "y"), over("y", "x")
    for name, host in (
        ("256 B", small),
        ("1 MB", np.ones((512, 512), np.float32)),
        (f"{MEGABYTES} MB", large),
    ):
        x, jx = put(host, "x", "y")
        jput = partial(jax.device_put, host, tiles[1])
        rows += [
            awaited(f"device_put of {name}", partial(plugrt.device_put, host, tiles[0]), jput),
            *beside({f"device_put of {name}: memcpy": timed(copying_parts(host, tiles[0]))}, jput),
            awaited(
                f"reshard of {name}, (x, y) to (y, x)",
                lambda x=x: plugrt.device_put(x, swapped[0]),
                lambda jx=jx: jax.device_put(jx, swapped[1]),
            ),
        ]
        if PLATFORM == "cpu":
            rows += measure_copies(name, x, lambda jx=jx: jax.device_put(jx, swapped[1]))
    return rows


def copying_parts(host: Any, sharding: Any) -> Callable[[], None]:
    """Returns a function that copies each device's part of a host array to memory in use."""
    parts = [host[index] for index in sharding.devices_indices_map(host.shape).values()]
    pairs = [(np.ones_like(part, order="C"), part) for part in parts]

    def copy() -> None:
        for to, part in pairs:
            np.copyto(to, part)

    return copy


def measure_copies(name: str, x: Any, theirs: Callable[[], Any]) -> list[Row]:
    """Returns the rows of copies of two parts of an array, beside JAX's reshard."""
    first, second = x._shards.buffers()[1:3]
    pairs = [(first.raw, second.place), (second.raw, first.place)]
    parts = [(part.to_host(), np.ones_like(part.to_host())) for part in (first, second)]

    def by_jaxlib() -> None:
        adapter.wait_for_all([adapter.copy(raw, to.raw_devices, to.sharding) for raw, to in pairs])

    def by_memcpy() -> None:
        for part, other in parts:
            np.copyto(other, part)

    return [
        compare(f"reshard of {name}: {what}", ours, lambda: jax.block_until_ready(theirs()))
        for what, ours in (("jaxlib's copies alone", by_jaxlib), ("memcpy", by_memcpy))
    ]


if __name__ == "__main__":
    rows = [*measure_calls(), *measure_forms(), *measure_moves()]
    report(
        f"A mesh of {DEVICES} virtual devices of {PLATFORM}",
        cores.judge(rows, PLATFORM, devices.BUDGETS),
        OPTIONS.json,
    )
