"""A child's program: Python functions that fail on one of four devices.

It prints the outcome of each case in a line, and an alarm ends it if one of them hangs.
"""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import plugrt
from plugrt import array_api as xp
from plugrt import ffi, lax
from plugrt.sharding import NamedSharding
from plugrt.sharding import PartitionSpec as P

X = np.arange(8, dtype=np.float32)
PART = plugrt.ShapeDtypeStruct((2,), np.dtype("float32"))


def fail(v: Any) -> Any:
    if v[0] == 2:
        raise KeyError("the second part")
    return v


def handle(arguments: Any, results: Any, attributes: Any) -> None:
    results[0][...] = fail(arguments[0])


def over_parts(function: Callable[[Any], Any]) -> Any:
    mesh = plugrt.make_mesh((4,), ("i",), devices=plugrt.devices()[:4])
    return plugrt.jit(plugrt.shard_map(function, mesh=mesh, in_specs=P("i"), out_specs=P()))(X)


def partitioned() -> Any:
    mesh = plugrt.make_mesh((4,), ("i",), devices=plugrt.devices()[:4])

    def f(v: Any) -> Any:
        plugrt.debug.callback(fail, v, partitioned=True)
        return xp.sum(v)

    return plugrt.jit(f)(plugrt.device_put(X, NamedSharding(mesh, P("i"))))


def handler() -> Any:
    ffi.register_ffi_target("fail_in_one", handle, platform=plugrt.default_backend())
    return over_parts(lambda v: lax.psum(ffi.ffi_call("fail_in_one", PART)(v), "i"))


def by_operation() -> Any:
    def f(v: Any) -> Any:
        return lax.psum(plugrt.pure_callback(fail, PART, v), "i")

    with plugrt.disable_jit():
        return plugrt.pmap(f, axis_name="i", devices=plugrt.devices()[:4])(X.reshape(4, 2))


def loop() -> Any:
    """Runs a loop that calls the failing function before an exchange."""

    def part(v: Any) -> Any:
        def body(total: Any) -> Any:
            return lax.psum(plugrt.io_callback(fail, PART, v), "i")[0]

        return lax.while_loop(lambda total: total < 1, body, np.float32(0))

    return over_parts(part)


def interrupt() -> Any:
    """Raises Ctrl-C while the parts compute; `effects_barrier` waits for the rest."""
    called, release = threading.Event(), threading.Event()
    left: list[int] = []

    def hold(v: Any) -> Any:
        called.set()
        release.wait(60)
        left.append(int(v[0]))
        return v

    def press() -> None:
        called.wait(60)
        _thread.interrupt_main()

    threading.Thread(target=press, daemon=True).start()
    try:
        return over_parts(lambda v: lax.psum(plugrt.pure_callback(hold, PART, v), "i"))
    except KeyboardInterrupt as error:
        release.set()
        plugrt.effects_barrier()
        raise KeyboardInterrupt(f"left {sorted(left)}") from error


def main() -> None:
    signal.alarm(150)
    for case in (partitioned, handler, by_operation, loop, interrupt):
        try:
            said = f"returned {np.asarray(case())}"
        except (plugrt.errors.PjrtError, KeyboardInterrupt) as error:
            said = f"{type(error).__name__}: {error}".splitlines()[0]
        print(case.__name__, said, flush=True)
    plugrt.effects_barrier()
    print("next", np.asarray(over_parts(lambda v: lax.psum(v, "i"))).tolist(), flush=True)


if __name__ == "__main__":
    main()
