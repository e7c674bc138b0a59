"""Calls of every kind in the compiled core leave no reference and no memory behind."""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import plugrt
from plugrt.errors import DeletedBuffer
from plugrt.interface import Client
from plugrt.native.native_core import core
from support.library_client import default_client
from support.native_core import runs_in_c
from support.xla_cpu import needs_library

pytestmark = [needs_library, runs_in_c]
H = np.arange(4, dtype=np.float32)
_IMMORTAL = 1 << 29
"""Objects with as many references are immortal; no other object has nearly as many."""
CALLS = 300
"""Calls of each kind, at first: one leaked reference per call exceeds all that caches keep."""


class Pair(NamedTuple):
    one: Any
    two: Any


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with default_client("core references") as made:
        yield made


def _count_references() -> Counter[str]:
    """Returns the numbers of references to all tracked objects, and to their referents, by type.

    Tracked means by the garbage collector. Immortal objects are excluded: from Python 3.12 on their
    count means nothing, and a core of the limited API of 3.11 still changes it (PEP 683).
    """
    while gc.collect():  # finalizers may free more, which the next collection finds
        pass
    found: dict[int, Any] = {}
    for tracked in gc.get_objects():
        found[id(tracked)] = tracked
        for held in gc.get_referents(tracked):
            found[id(held)] = held
    counted: Counter[str] = Counter()
    for x in found.values():
        references = sys.getrefcount(x)
        if references < _IMMORTAL:
            counted[type(x).__name__] += references
    return counted


class Left(NamedTuple):
    """The leftovers of a number of calls."""

    calls: int
    references: int
    """Counted by type, without types that have fewer: other tests left these."""
    size: int
    """In bytes."""
    most: list[tuple[str, int]]
    """The types with the most new references."""

    def is_of_each(self) -> bool:
        """Whether each call may have left a reference or an object of the smallest size.

        Half as many references suffice, since references to the same types are dropped meanwhile.
        """
        return 2 * self.references >= self.calls or self.size >= 16 * self.calls


def _measure(call: Callable[[int], Any], calls: int) -> Left:
    for i in range(100):  # caches fill
        call(i)
    before = json.dumps(_count_references())  # numbers in a Counter would be counted, too
    for i in range(calls):
        call(i)
    references = _count_references()
    references.subtract(json.loads(before))
    tracemalloc.start()
    try:
        for i in range(10):
            call(i)
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
        for i in range(calls):
            call(i)
        gc.collect()
        size = tracemalloc.get_traced_memory()[0] - size
        return Left(calls, (+references).total(), size, references.most_common(5))
    finally:
        tracemalloc.stop()


def _find_left(call: Callable[[int], Any]) -> list[Left]:
    """Returns the leftovers, measured three times, if each call leaves something; else nothing.

    Each time there are four times as many calls: caches that fill once, and are not always cleared,
    do not grow like that. Collections at random moments of calls that raise leave up to 6 KB, for
    300 calls or for 3000.
    """
    found: list[Left] = []
    for calls in (CALLS, 4 * CALLS, 16 * CALLS):
        left = _measure(call, calls)
        if not left.is_of_each():
            return []
        found.append(left)
    return found


def _kinds() -> dict[str, Callable[[int], Any]]:
    x, y, gone = (plugrt.device_put(H) for _ in range(3))
    gone.delete()
    state = [plugrt.device_put(H)]
    many = {f"k{i}": x for i in reversed(range(40))}
    step = plugrt.jit(lambda a, b: a + b, donate_argnums=0)
    forms = plugrt.jit(lambda t: {"p": Pair(t["k1"] + 1, [t["k2"]]), "o": OrderedDict(z=t["k3"])})
    parts = plugrt.jit(lambda a: [[a + i, None] for i in range(40)] + [a, {"b": a, "a": x}])
    static = plugrt.jit(lambda a, n, *, k, m: a * n + k, static_argnums=1, static_argnames="m")
    host = plugrt.jit(lambda a, b, c: a + b * c)

    def donate(i: int) -> None:
        state[0] = step(state[0], y)

    def fail(i: int) -> None:
        try:  # `pytest.raises` costs a millisecond under tracemalloc
            host(gone, y, 1.0)
        except DeletedBuffer:
            return
        raise AssertionError("a deleted buffer was launched")

    def launch(i: int) -> None:
        given = core.FunctionLauncher(lambda g: [*g, g], 2, tuple, (), None, (), None)
        pair = core.Outputs(("a", "b"), (-1, -1), (), None, core.Tree(2, (0, 1), None))
        runner = core.Runner(
            given, 1, (0,), (None,), (), (), "f", pair, lambda _: None, lambda *_: None
        )
        runner((x,))

    return {
        "donation": donate,
        "forms": lambda i: forms(many),
        "parts": lambda i: parts(x),
        "static": lambda i: static(x, (2.5, 3)[i % 2], k=y, m=1.5),
        "host values": lambda i: host(H, 0.5 * (i % 7), np.float32(2) * H),
        "reads": lambda i: np.asarray(host(x, y, y)),
        "puts": lambda i: plugrt.device_put(H),
        "failures": fail,
        "a backend's functions": launch,
    }


def test_calls_of_every_kind_leave_nothing_behind(client: Client) -> None:
    for name, call in _kinds().items():
        left = _find_left(call)
        assert not left, (name, left)
