"""Measures a backend that another process serves, in turn with the same backend in this process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from harness import Comparison, Timer, arguments, compare_sides, prepare, report_sides, timed

DEVICES = 4
prepare(DEVICES)

import numpy as np  # noqa: E402

import plugrt  # noqa: E402
from plugrt.errors import Unavailable  # noqa: E402

FEW = 400
"""Launches that are not awaited in a sample: less than the server's window of 1,024."""


def not_awaited(launch: Callable[[], Any]) -> Timer:
    """Returns the timer of calls, without the wait for the last."""

    def timer(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            last = launch()
        taken = time.perf_counter() - start
        plugrt.block_until_ready(last)
        return taken / count

    return timer


def to_the_end(launch: Callable[[], Any]) -> Timer:
    """Returns the timer of `FEW` calls, for any count, with the wait for the last."""

    def timer(_: int) -> float:
        start = time.perf_counter()
        for _ in range(FEW):
            last = launch()
        plugrt.block_until_ready(last)
        return (time.perf_counter() - start) / FEW

    return timer


def put(client: Any, host: Any) -> None:
    """Puts an array and waits for it."""
    client.buffer_from_host(host, client.devices()[0]).block_until_ready()


def measure() -> list[Comparison]:
    """Returns a row for each question."""
    clients = {"remote": plugrt.get_backend("remote"), "local": plugrt.get_backend("cpu")}
    add = plugrt.jit(lambda x, y: x + y)
    plus = {side: plugrt.pmap(lambda x: x + 1, devices=c.devices()) for side, c in clients.items()}
    rows = np.arange(4.0 * DEVICES, dtype=np.float32).reshape(DEVICES, 4)
    calls: dict[str, Callable[[], Any]] = {}
    pmaps: dict[str, Callable[[], Any]] = {}
    for side, client in clients.items():
        x = plugrt.device_put(np.ones(4, np.float32), client.devices()[0])
        calls[side] = partial(add, x, x)
        pmaps[side] = partial(plus[side], plus[side](rows))
    found = []
    for name, count in {"64 kB": 1 << 14, "64 MB": 1 << 24}.items():
        host = np.ones(count, np.float32)
        copy = timed(partial(np.copyto, np.empty_like(host), host))
        budgets = ({"memcpy": 1.3}, {"local": 1.0}) if count > 1 << 20 else ({}, {})
        reads = {s: c.buffer_from_host(host, c.devices()[0]).to_host for s, c in clients.items()}
        puts = {side: partial(put, client, host) for side, client in clients.items()}
        found += [
            compare_sides(f"read {name}", {**each(timed, reads), "memcpy": copy}, budgets[0]),
            compare_sides(
                f"put {name}, awaited", {**each(timed, puts), "memcpy": copy}, budgets[1]
            ),
        ]
    found += [
        compare_sides("jit(x + y), not awaited: the call", each(not_awaited, calls),
                      {"local": 3.0}, most=FEW),
        compare_sides("jit(x + y), not awaited: to the end", each(to_the_end, calls), most=FEW),
        compare_sides("jit(x + y), awaited",
                      each(lambda f: timed(lambda: f().block_until_ready()), calls)),
        compare_sides("jit(x + y), launch and read",
                      each(lambda f: timed(lambda: np.asarray(f())), calls)),
        compare_sides(f"pmap x + 1 on {DEVICES} devices, to the end", each(to_the_end, pmaps),
                      {"local": 2.0}, most=FEW),
    ]  # fmt: skip
    return found


def each(make: Callable[[Callable[[], Any]], Timer], calls: dict[str, Any]) -> dict[str, Timer]:
    """Returns a timer for each side."""
    return {side: make(call) for side, call in calls.items()}


def main() -> None:
    """Starts a server, measures and prints the tables."""
    options = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PLUGRT_REMOTE"] = address = f"unix:{folder}/s"
        os.environ["JAX_PLATFORMS"] = "cpu,remote"
        command = [sys.executable, "-m", "plugrt", "serve", "--platform", "cpu", "--bind", address]
        environ = {**os.environ, "JAX_PLATFORMS": "cpu"}
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ) as server:
            try:
                assert server.stdout is not None
                if not server.stdout.readline():
                    raise Unavailable("the server has not started")
                report_sides("a served backend", measure(), options.json)
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
