"""Measures one PJRT library (xla-cpu-pjrt) under plugrt, JAX, pypjrt and plain C in turn.

plugrt has two columns: calls in the compiled core, and calls in Python, which another process makes
on request (other_core.py). The C column is the library's own time (see floor.c). pypjrt has no
asynchronous call: it waits for the results of each, like the rows marked "awaited". JAX and plugrt
read host-addressable memory without a copy; pypjrt copies. ``--calls yes`` omits the transfers of
more than 16 bytes. ``--profile yes`` shows where the rest of a jitted call's time goes.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from harness import (
    Comparison,
    Timer,
    arguments,
    compare_sides,
    prepare_library,
    report_sides,
    timed,
)  # fmt: skip

LIBRARY = prepare_library()
warnings.filterwarnings("ignore", message="Platform 'xla_cpu' is experimental")

import jax  # noqa: E402
import numpy as np  # noqa: E402
import pypjrt  # noqa: E402
from floor import Floor  # noqa: E402
from layers import print_layers  # noqa: E402
from other_core import OtherCore, serve  # noqa: E402

import plugrt  # noqa: E402
from plugrt.native.native_core import core, reason  # noqa: E402

FLOAT32 = 11
FOUR = np.arange(4, dtype=np.float32)
SIZES = {"4 kB": 1 << 10, "64 kB": 1 << 14, "1 MB": 1 << 18, "64 MB": 1 << 24,
         "256 MB": 1 << 26}  # fmt: skip


class Call(NamedTuple):
    """A jitted call on ``arity`` arrays of 4 floats, and the largest allowed ratios of the core."""

    name: str
    function: Callable[..., Any]
    arity: int
    results: int = 1
    wait: bool = False
    budgets: dict[str, float] = {}  # noqa: RUF012  # nobody changes it


CALLS = (
    Call("call, 1 argument", lambda a: a + 1, 1),
    Call("call, 2 arguments", lambda a, b: a + b, 2, budgets={"JAX": 0.35, "C": 1.35}),
    Call("call, 2 arguments, awaited", lambda a, b: a + b, 2, wait=True),
    Call("call, 32 arguments", lambda *a: sum(a[1:], a[0]), 32, budgets={"JAX": 0.35}),
    Call("call, 200 arguments", lambda *a: sum(a[1:], a[0]), 200),
    Call(
        "call, 32 results", lambda a: tuple(a + i for i in range(32)), 1, 32,
        budgets={"JAX": 0.55},
    ),
)  # fmt: skip


def call_plugrt(call: Call) -> Callable[[], Any]:
    """Returns plugrt's call."""
    arrays = [plugrt.device_put(FOUR) for _ in range(call.arity)]
    ready = plugrt.block_until_ready if call.wait else None
    return _call(plugrt.jit(call.function), arrays, ready)


def put_in_plugrt(host: Any, replicas: int) -> None:
    """Puts an array on ``count`` devices and waits."""
    devices = plugrt.devices()[:replicas]
    plugrt.block_until_ready([plugrt.device_put(host, d) for d in devices])


def parallel_in_plugrt(count: int) -> Callable[[], Any]:
    """Returns a data-parallel call on ``count`` devices that waits for the results."""
    mapped = plugrt.pmap(lambda a: a + 1)
    given = mapped(np.ones((count, 4), np.float32))
    return lambda: mapped(given).block_until_ready()


def plugrt_timer(question: str) -> Timer:
    """Returns plugrt's timer in this process for a measurement by its name."""
    for call in CALLS:
        if call.name == question:
            return timed(call_plugrt(call))
    kind, number = question.split()
    if kind == "pmap":
        return timed(parallel_in_plugrt(int(number)))
    return timed(partial(put_in_plugrt, FOUR, int(number)))


class Sides:
    """The hosts of the library; each method measures one question on all of them."""

    def __init__(self) -> None:
        self.python = OtherCore(__file__)
        self.floor = Floor(LIBRARY)
        self.pypjrt = pypjrt.Client.create(str(LIBRARY))
        self._borrowed = self.pypjrt.devices()
        self.devices = self._borrowed.__enter__()

    def addition(self) -> str:
        """Returns the program that adds two arrays of 4 floats."""
        return plugrt.jit(lambda a, b: a + b).lower(FOUR, FOUR).as_text()

    def call(self, call: Call) -> Comparison:
        """Compares a jitted call."""
        theirs = jax.jit(call.function)
        others = [jax.device_put(FOUR) for _ in range(call.arity)]
        program = plugrt.jit(call.function).lower(*[FOUR] * call.arity).as_text()
        peer = self.pypjrt.compile(program)
        buffers = [self._put(FOUR, 0) for _ in range(call.arity)]

        def closing() -> None:
            for buffer in peer(*buffers):
                buffer.close()

        ready_jax = jax.block_until_ready if call.wait else None
        return compare_sides(
            call.name,
            {
                "plugrt": timed(call_plugrt(call)),
                "Python": self.python.timer(call.name),
                "JAX": timed(_call(theirs, others, ready_jax)),
                "pypjrt": timed(closing),
                "C": self.floor.launch(program, FOUR, call.arity, call.results, wait=call.wait),
            },
            call.budgets,
        )

    def put(self, name: str, size: int, replicas: int = 1) -> Comparison:
        """Compares puts of an array on ``count`` devices, with the wait."""
        host = np.ones(size, np.float32)
        hosts = [host] * replicas
        others = jax.devices()[:replicas]

        def closing() -> None:
            for buffer in [self._put(host, d) for d in range(replicas)]:
                buffer.close()

        return compare_sides(
            name,
            {
                "plugrt": timed(partial(put_in_plugrt, host, replicas)),
                **({"Python": self.python.timer(f"put {replicas}")} if size == FOUR.size else {}),
                "JAX": timed(lambda: jax.block_until_ready(jax.device_put(hosts, others))),
                "pypjrt": timed(closing),
                "C": self.floor.put(host, replicas),
            },
            rounds=_rounds(size),
            most=_most(size),
        )

    def get(self, name: str, size: int) -> Comparison:
        """Compares first reads of an array: hosts cache the value of an array that was read."""
        host = np.ones(size, np.float32)

        def put(_: Any = None) -> Any:
            return plugrt.device_put(host).block_until_ready()

        def put_jax(_: Any = None) -> Any:
            # A result: an array that JAX puts may alias host memory, and then no read takes place.
            return double(on_jax).block_until_ready()

        def read(buffer: Any) -> None:
            buffer.to_host(np.empty(size, np.float32))

        double, on_jax = jax.jit(lambda a: a * 2), jax.device_put(host)
        buffer = self._put(host, 0)
        return compare_sides(
            name,
            {
                "plugrt": _fresh(put, np.asarray),
                "JAX": _fresh(put_jax, np.asarray),
                "pypjrt": timed(lambda: read(buffer)),
                "C": self.floor.get(host),
            },
            rounds=_rounds(size),
            most=_most(size),
        )

    def parallel(self, name: str) -> Comparison:
        """Compares a data-parallel call on all devices, with the wait."""
        count = self.floor.devices
        host = np.ones((count, 4), np.float32)
        theirs = jax.pmap(lambda a: a + 1)
        others = theirs(host)
        program = plugrt.jit(lambda a: a + 1).lower(FOUR).as_text()
        peer = self.pypjrt.compile(program, options=pypjrt.CompileOptions(num_replicas=count))
        rows = [[self._put(FOUR, d)] for d in range(count)]

        def closing() -> None:
            for row in peer.execute_sharded(rows):
                row[0].close()

        return compare_sides(
            name,
            {
                "plugrt": timed(parallel_in_plugrt(count)),
                "Python": self.python.timer(f"pmap {count}"),
                "JAX": timed(lambda: theirs(others).block_until_ready()),
                "pypjrt": timed(closing),
                "C": self.floor.launch(program, FOUR, 1, 1, count, wait=True),
            },
            {"JAX": 0.7},
        )

    def _put(self, host: Any, device: int) -> Any:
        return self.pypjrt.buffer_from_host(host, FLOAT32, list(host.shape), self.devices[device])


def _call(function: Any, arrays: list[Any], ready: Any) -> Callable[[], Any]:
    """Returns the call in a user's form: few arguments by name, many as a list."""
    if ready is not None:
        return lambda: ready(function(*arrays))
    if len(arrays) == 1:
        (x,) = arrays
        return lambda: function(x)
    if len(arrays) == 2:
        x, y = arrays
        return lambda: function(x, y)
    return lambda: function(*arrays)


def _fresh(make: Callable[[], Any], read: Callable[[Any], Any]) -> Timer:
    """Times ``read`` of arrays that are made before the clock starts."""

    def timer(count: int) -> float:
        arrays = [make() for _ in range(count)]
        start = time.perf_counter()
        for array in arrays:
            read(array)
        return (time.perf_counter() - start) / count

    return timer


def _most(size: int) -> int:
    """Returns the largest number of arrays that exist at once: 64 MB."""
    return max(1, min(2_000, (1 << 24) // size))


def _rounds(size: int) -> int | None:
    return None if size < 1 << 20 else 4


def measure(sides: Sides, calls_alone: bool) -> list[Comparison]:
    """Returns a row for each question."""
    count = sides.floor.devices
    rows = [sides.call(call) for call in CALLS]
    rows += [
        sides.parallel(f"pmap on {count} devices, awaited"),
        sides.put(f"put 16 B on {count} devices", 4, count),
        sides.put("put 16 B", 4),
        sides.get("get 16 B", 4),
    ]
    if not calls_alone:
        rows += [sides.put(f"put {name}", size) for name, size in SIZES.items()]
        rows += [sides.get(f"get {name}", size) for name, size in SIZES.items()]
    return rows


if __name__ == "__main__":
    options = arguments(
        __doc__, profile="also say where a jitted call spends its time",
        calls="leave out transfers of more than 16 bytes", serve="used by this program itself",
    )  # fmt: skip
    if options.serve:
        serve(plugrt_timer)
        raise SystemExit
    if core is None:
        raise SystemExit(f"this benchmark compares the compiled core, which is not here: {reason}")
    with (everyone := Sides()).python:
        rows = measure(everyone, bool(options.calls))
    report_sides(
        "One PJRT library under plugrt, in C and in Python, and others", rows, options.json
    )
    if options.profile:
        print_layers(everyone.floor, everyone.addition(), FOUR)
