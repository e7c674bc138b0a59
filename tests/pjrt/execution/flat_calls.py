"""Memory that calls leave behind: ``python -m pjrt.execution.flat_calls COUNT``.

Each kind of call is made COUNT times, after some to warm up; kinds that run in Python, with a
hundred times the duration of the core's, a hundredth as often. Prints, as JSON, for each kind the
growth of the resident memory (MB), of the objects that Python tracks, and of the references to the
objects of each call.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import plugrt
from plugrt import device_put, jit
from plugrt.errors import DeletedBuffer, ShapeError


def resident() -> float:
    """Returns the resident memory of this process in megabytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


CALLS_AT_ONCE = {"numpy_and_scalar": 2, "by_keyword": 2}
"""The number of calls of a method of `Calls`, if that is not one."""
RARER = {"refused": 100, "new_functions": 10, "put_and_donated": 10}
"""The factor of fewer calls in Python: a leak of one object each is still found."""


class Calls:
    """Calls of each kind, and their shared objects."""

    def __init__(self) -> None:
        self.host = np.ones(64, np.float32)
        self.x, self.y = device_put(self.host), device_put(self.host)
        self.many = [device_put(self.host) for _ in range(8)]
        self.wrong = device_put(np.ones(3, np.float32))
        self.state = device_put(self.host)
        self.deleted = device_put(self.host)
        self.deleted.delete()
        self.add = jit(lambda a, b: a + b)
        self.named = jit(lambda a, b: {"sum": a + b, "both": [a * b, a - b]})
        self.listed = jit(lambda *xs: [x + 1 for x in xs])
        self.consume = jit(lambda a: a + 1, donate_argnums=0)
        self.static = jit(lambda a, n: a * n, static_argnames="n")

    def used(self) -> list[Any]:
        """Returns the objects whose references are counted."""
        found = [self.host, self.x, self.y, *self.many, self.deleted, self.add, self.named,
                 self.x.aval, self.x.dtype, self.x.sharding, type(self.x), type(self.add),
                 plugrt.config.token(), DeletedBuffer, dict, list]  # fmt: skip
        # From 3.12 on these do not count.
        return found if sys.version_info >= (3, 12) else [*found, None, True]

    def two_arrays(self) -> None:
        self.add(self.x, self.y)

    def results_in_a_dict(self) -> None:
        self.named(self.x, self.y)

    def many_of_both(self) -> None:
        self.listed(*self.many)

    def numpy_and_scalar(self) -> None:
        self.add(self.host, self.x)
        self.add(self.x, 2.0)

    def by_keyword(self) -> None:
        self.add(self.x, b=self.y)
        self.static(self.x, n=2)

    def donated(self) -> None:
        self.state = self.consume(self.state)

    def put_and_donated(self) -> None:
        self.consume(device_put(self.host))

    def read(self) -> None:
        np.asarray(self.add(self.x, self.y))

    def refused(self) -> None:
        for wrong, error in ((self.wrong, ShapeError), (self.deleted, DeletedBuffer)):
            try:
                self.add(self.x, wrong)
            except error:
                continue
            raise AssertionError("it was not refused")

    def in_a_cycle(self) -> None:
        cycle: list[Any] = [self.add(self.x, self.y)]
        cycle.append(cycle)

    def new_functions(self) -> None:
        """Makes objects of a class derived from the core's, alone and in a cycle."""
        function: Any = jit(lambda a: a)
        function.itself = function


def times(kind: str, count: int) -> int:
    """Returns how often to call a method of `Calls`, so that it makes ``count`` calls."""
    return max(200, count // CALLS_AT_ONCE.get(kind, 1) // RARER.get(kind, 1))


def growth(call: Callable[[], None], count: int, used: list[Any]) -> dict[str, float]:
    """Returns the growth of each figure in ``count`` calls."""

    def state() -> tuple[float, int, list[int]]:
        gc.collect()
        plugrt.live_arrays()  # frees objects that the collection left
        return resident(), len(gc.get_objects()), [*map(sys.getrefcount, used)]

    for _ in range(max(10, min(count // 10, 10_000))):
        call()
    memory, objects, references = state()
    for i in range(count):
        call()
        if i % max(1000, count // 100) == 999:
            gc.collect()
    then, objects_then, references_then = state()
    grown = [b - a for a, b in zip(references, references_then, strict=True)]
    return {"MB": then - memory, "objects": objects_then - objects, "references": max(grown)}


def main() -> None:
    """Prints the growth of each kind."""
    calls, count = Calls(), int(sys.argv[1])
    kinds = [n for n, f in vars(Calls).items() if callable(f) and n not in ("__init__", "used")]
    gc.freeze()
    found = {k: growth(getattr(calls, k), times(k, count), calls.used()) for k in kinds}
    runs_in = "c" if "plugrt._core" in sys.modules else "python"
    print(json.dumps({"runs in": runs_in, "grown": found}))


if __name__ == "__main__":
    main()
