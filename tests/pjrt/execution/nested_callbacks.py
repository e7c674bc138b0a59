"""Python functions that programs call and that launch programs, in a child that may hang.

``python -m pjrt.execution.nested_callbacks KIND SIZE`` runs each number of launches in flight,
depth and number of threads on the default backend, and prints a line for each with its result.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np
import numpy.typing as npt

import plugrt
from plugrt import array_api as xp
from plugrt import lax
from plugrt.errors import PjrtError
from plugrt.execution.executables import calling_launch
from plugrt.sharding import NamedSharding, PartitionSpec

Array = npt.NDArray[np.float32]
Host = Callable[[Any], Array]

KINDS: dict[str, Callable[[Host, Any], Any]] = {
    "pure": lambda host, m: plugrt.pure_callback(
        host, plugrt.ShapeDtypeStruct(m.shape, m.dtype), m
    ),
    "io": lambda host, m: plugrt.io_callback(host, plugrt.ShapeDtypeStruct(m.shape, m.dtype), m),
    "ordered": lambda host, m: plugrt.io_callback(
        host, plugrt.ShapeDtypeStruct(m.shape, m.dtype), m, ordered=True
    ),
    "debug": lambda host, m: (plugrt.debug.callback(cast("Any", host), m), m)[1],
}
HANDED = "handed"
"""A function that launches by threads of a pool, and waits for their results."""
CASES = {
    4: [(1, 1, 1), (1, 3, 1), (20, 2, 1), (20, 3, 1), (1, 3, 2), (20, 3, 2)],
    300: [(1, 3, 1), (20, 1, 1), (20, 3, 1), (20, 2, 2)],
}
"""Size to launches in flight, depth, threads."""
POOL = ThreadPoolExecutor(200)  # as many as may wait at once
SHARDED = ("jit", "pmap", "psum", "mesh")


def nest(kind: str, depth: int, wrong: list[str]) -> tuple[Callable[[Any], Any], Host]:
    """Returns a function whose program calls others, to that depth, and its equivalent in NumPy."""
    if not depth:
        return plugrt.jit(
            lambda m: xp.matmul(m, m) * 1e-3 + 1
        ), lambda m: m @ m * np.float32(1e-3) + 1
    inner, expect = nest(kind, depth - 1, wrong)

    def compute(m: Array) -> Array:
        return np.asarray(inner(plugrt.device_put(m)))

    def host(m: Array) -> Array:
        found = POOL.submit(compute, m).result() if kind == HANDED else compute(m)
        if not np.allclose(found, expect(m), 1e-3):
            wrong.append(f"depth {depth - 1}")
        return found

    returns = kind != "debug"
    return (
        plugrt.jit(
            lambda m: KINDS["pure" if kind == HANDED else kind](host, xp.matmul(m, m) * 1e-3) + 1
        ),
        lambda m: (expect if returns else np.asarray)(m @ m * np.float32(1e-3)) + 1,
    )


def run(kind: str, size: int, flight: int, depth: int, threads: int) -> str:
    """Returns "ran", "refused" or the error of one case."""
    wrong: list[str] = []
    said: list[str] = []
    x = np.ones((size, size), np.float32)
    function, expect = nest(kind, depth, wrong)

    def work() -> None:
        try:
            made = [function(plugrt.device_put(x * i)) for i in range(flight)]
            for i, each in enumerate(made):
                if not np.allclose(np.asarray(each), expect(x * i), 1e-3):
                    wrong.append(f"launch {i}")
            plugrt.effects_barrier()
        except PjrtError as error:
            said.append(str(error))
        except Exception as error:  # noqa: BLE001  # the line has it
            wrong.append(repr(error))

    pool = [threading.Thread(target=work) for _ in range(threads - 1)]
    for thread in pool:
        thread.start()
    work()
    for thread in pool:
        thread.join()
    return judge(said, wrong)


def judge(said: list[str], wrong: list[str]) -> str:
    """Returns the outcome of a case, from its errors and the results that are not NumPy's."""
    try:
        plugrt.effects_barrier()
    except PjrtError as error:
        said.append(str(error))
    if wrong:
        return f"wrong: {wrong}"
    refusals = [text for text in said if "'host' of " in text and "Fix: " in text]
    return "ran" if not said else "refused" if refusals else f"failed: {said[0]}"


def run_over_devices(outer: str, inner: str, size: int) -> str:
    """Returns the outcome of a function that a program on several devices calls."""
    x = np.ones((size, size), np.float32)
    call = _over_devices(inner, lambda m: xp.matmul(m, m) * 1e-3 + 1)
    shape = plugrt.ShapeDtypeStruct(x.shape, x.dtype)

    def host(m: Array) -> Array:
        return call(m)

    calling = _over_devices(outer, lambda m: plugrt.pure_callback(host, shape, m * 2) + 1)
    said: list[str] = []
    wrong: list[str] = []
    try:
        if not np.allclose(calling(x), (x * 2) @ (x * 2) * 1e-3 + 2, 1e-3):
            wrong.append("result")
    except PjrtError as error:
        said.append(str(error))
    return judge(said, wrong)


def _over_devices(how: str, body: Callable[[Any], Any]) -> Callable[[Array], Array]:
    """Returns a function of one array that runs on one device or on all four."""
    if how == "jit":
        alone = plugrt.jit(body)
        return lambda m: np.asarray(alone(m))
    if how == "mesh":
        mesh = plugrt.make_mesh((4,), ("x",))
        sharding, whole = NamedSharding(mesh, PartitionSpec("x")), plugrt.jit(body)
        return lambda m: np.asarray(whole(plugrt.device_put(m, sharding)))

    def mean(m: Any) -> Any:
        return lax.psum(body(m), "i") / 4

    each = plugrt.pmap(mean if how == "psum" else body, axis_name="i")
    return lambda m: np.asarray(each(np.stack([m] * 4)))[0]


def main(kind: str, size: str) -> None:
    calling_launch.PATIENCE = 1.0
    if kind == "devices":
        for outer, inner in itertools.product(SHARDED, SHARDED):
            print(outer, inner, end=" ", flush=True)
            print(run_over_devices(outer, inner, int(size)), flush=True)
        return
    for flight, depth, threads in CASES[int(size)]:
        print(flight, depth, threads, end=" ", flush=True)
        print(run(kind, int(size), flight, depth, threads), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
