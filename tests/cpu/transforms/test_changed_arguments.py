"""First calls whose arguments change meanwhile: no other call uses their trace."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.errors import ArgumentMismatch
from support.effort import some_of
from support.native_core import IN_C

X, Y = (plugrt.device_put(np.full(2, n, np.float32)) for n in (3, 5))
Change = Callable[[dict[Any, Any]], None]
MOST = 24  # a first call computes a hash up to 21 times: a test changes a dict at some of them


class Changing:
    """Changes a dict at the ``left``-th computation of its hash; may undo it at the next."""

    def __init__(
        self, given: dict[Any, Any], change: Change, left: int, back: bool = False
    ) -> None:
        self._given, self._before, self._change = given, {**given}, change
        self._left, self._back = left, back

    def __hash__(self) -> int:
        self._left -= 1
        if self._left == 0:
            self._change(self._given)
        if self._left == -1 and self._back:
            self._given.clear()
            self._given.update(self._before)
        return 7


def turn(given: dict[Any, Any]) -> None:
    """Moves the values of a dict to other keys."""
    values = [*given.values()]
    given.clear()
    given.update(zip("kn23456789abcdefghijopqrst", values, strict=False))


def add(given: dict[Any, Any]) -> None:
    """Inserts another array into a dict, before the others."""
    rest = {**given}
    given.clear()
    given.update({"a": Y}, **rest)


def replace(given: dict[Any, Any]) -> None:
    """Replaces an array by a list."""
    given["k"] = [given["k"], Y]


def swap(given: dict[Any, Any]) -> None:
    """Reverses the order of two keys, and exchanges their arrays."""
    given["k"], given["l"] = given.pop("l"), given.pop("k")


def described(x: Any) -> Any:
    """Returns the keys and the values of a call's arguments or results."""
    if isinstance(x, dict):
        return {key: described(value) for key, value in x.items()}
    return [*map(described, x)] if isinstance(x, list) else float(x[0])


def copied(x: dict[Any, Any], other: Any) -> Any:
    """Returns a copy of an argument, as the program's result."""
    return plugrt.tree.map(lambda leaf: leaf + 0, x)


def changed(form: dict[Any, Any], change: Change) -> dict[Any, Any]:
    """Returns a dict after a change."""
    made = {**form}
    change(made)
    return made


BEFORE = {"l": X, "k": Y}
changes = pytest.mark.parametrize("change", [turn, add, replace, swap])


@changes
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("is_static", [False, True])
def test_a_cached_trace_matches_the_arguments_that_were_traced(
    change: Change, is_static: bool, back: bool
) -> None:
    for left in some_of(range(1, MOST), 8, f"{change.__name__} {is_static} {back}"):
        given = {**BEFORE}
        changing = Changing(given, change, left, back)
        other: Any = changing if is_static else {changing: X}
        copy = plugrt.jit(copied, static_argnums=1 if is_static else ())
        copy(given, other)
        for form in (BEFORE, changed(BEFORE, change), BEFORE):
            assert described(copy(form, other)) == described(form), left


@changes
def test_a_compiled_function_refuses_arguments_that_changed(change: Change) -> None:
    for left in some_of(range(1, MOST), 8, change.__name__):
        given = {**BEFORE}
        other = {Changing(given, change, left): X}
        copy = plugrt.jit(copied).lower(BEFORE, other).compile()
        try:
            copy(given, other)
        except ArgumentMismatch:
            assert described(given) != described(BEFORE)
        for _ in range(2):
            assert described(copy(BEFORE, other)) == described(BEFORE)
            after = changed(BEFORE, change)
            if change is swap:
                assert described(copy(after, other)) == described(after)
            else:
                with pytest.raises(ArgumentMismatch):
                    copy(after, other)


@changes
def test_control_flow_uses_the_arguments_that_were_traced(change: Change) -> None:
    def copy(other: Any, x: Any) -> Any:
        return copied(x, other)

    after = changed(BEFORE, change)
    for left in some_of(range(1, MOST), 8, change.__name__):
        given = {**BEFORE}
        other = {Changing(given, change, left): X}
        seen = described(plugrt.lax.cond(True, copy, copy, other, given))
        assert seen in (described(BEFORE), described(after))
        for form in (BEFORE, after, BEFORE):
            found = plugrt.lax.cond(True, copy, copy, other, form)
            assert described(found) == described(form)


def test_donation_applies_to_the_arguments_that_were_traced() -> None:
    """With another number of leaves in the dict, the donated leaf would have another index."""
    for left in some_of(range(1, MOST), 8):
        given: dict[Any, Any] = {"b": Y}
        changing = Changing(given, add, left)
        last = plugrt.device_put(np.full(2, 2, np.float32))
        step = plugrt.jit(lambda d, x, y, s: (x + 1, y + 1), static_argnums=3, donate_argnums=1)
        for d in (given, {"b": Y}):
            first = plugrt.device_put(np.full(2, 1, np.float32))
            assert described([*step(d, first, last, changing)]) == [2, 3]
            assert first.is_deleted()
            assert not last.is_deleted()


def reorder(given: dict[Any, Any]) -> None:
    """Changes the order of the same keys and values."""
    given["l"] = given.pop("l")


def grow(given: dict[Any, Any]) -> None:
    """Adds keys."""
    given.update(zip("mno", [X] * 3, strict=True))


@pytest.mark.parametrize("change", [turn, add, replace, swap, reorder, grow, dict.clear])
@pytest.mark.parametrize("is_nested", [False, True])
def test_a_container_changes_while_a_known_call_is_flattened(
    change: Change, is_nested: bool
) -> None:
    """A callback of the garbage collector changes it; Python up to 3.11 collects at allocations."""
    copy = plugrt.jit(lambda x: copied(x, None))
    before = {**BEFORE, **{str(i): X for i in range(24)}}  # Python caches some smaller tuples
    after = changed(before, change)
    outer: Callable[[Any], Any] = (lambda x: [x, X]) if is_nested else (lambda x: x)
    held: list[set[Any]] = []
    left = 0

    def collecting(phase: str, info: dict[str, int]) -> None:
        nonlocal left
        left -= phase == "start"
        if left == 0 and phase == "start":
            change(given)

    wanted = [described(outer(form)) for form in (before, after)]
    threshold = gc.get_threshold()
    gc.callbacks.append(collecting)
    try:
        for at in some_of(range(1, 3 * MOST), 24, f"{change.__name__} {is_nested}"):
            given = {**before}
            argument = outer(given)
            for form in (before, after):  # so that the last call has another form
                copy(outer(form))
            held[:] = [set() for _ in range(at % 3)]  # brings the collection forward
            gc.set_threshold(1)
            left = at // 3
            found = copy(argument)
            left = 0
            gc.set_threshold(*threshold)
            assert described(found) in wanted
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(collecting)


class Opened:
    """An object with metadata, whose flatten function each test sets."""

    opens: Callable[[], object]

    def __init__(self, part: Any, data: Any = None) -> None:
        self.part, self.data = part, data


def _open(x: Opened) -> tuple[tuple[Any], Any]:
    Opened.opens()
    return (x.part,), x.data


plugrt.tree.register_node(Opened, _open, lambda data, parts: Opened(*parts, data))


def test_an_ordered_dict_whose_order_changes_is_kept_under_neither_order() -> None:
    for left in some_of(range(1, MOST), 8):
        given, opened = OrderedDict(k=Y, l=X), 0

        def reorder_at(left: int = left, given: Any = given) -> None:
            nonlocal opened
            opened += 1
            if opened == left:
                given.move_to_end("k")

        Opened.opens = reorder_at
        first = plugrt.jit(lambda _, d: next(iter(d.values())) * 1)
        assert described([first(Opened(X), given)]) in ([3], [5])
        for names in ("kl", "lk") * 2:
            given = OrderedDict((n, BEFORE[n]) for n in names)
            assert described([first(Opened(X), given)]) == [5 if names == "kl" else 3]


@pytest.mark.parametrize("kind", [lambda x: x, lambda x: {"k": x}, lambda x: [({"k": x},)]])
def test_a_first_call_keeps_no_argument_until_the_collector_runs(kind: Any) -> None:
    copy = plugrt.jit(lambda x: plugrt.tree.map(lambda leaf: leaf + 0, x))
    array = plugrt.device_put(np.ones(7, np.float32))
    end = weakref.ref(array)
    gc.collect()
    gc.disable()
    try:
        copy(kind(array))
        copy(kind(X))  # replaces the last call
        del array
        assert end() is None
    finally:
        gc.enable()


CHANGED_BY_NODE = """
from collections import OrderedDict, defaultdict, namedtuple
import numpy as np
import plugrt

class Node:
    pass

def flatten(node):
    global left
    left -= 1
    if not left:
        given.pop("b")
    return (), None

plugrt.tree.register_node(Node, flatten, lambda data, parts: Node())
Pair = namedtuple("Pair", "a b")
X = plugrt.device_put(np.float32(1))
copy = lambda x: [v + 1 for v in plugrt.tree.leaves(x)]
containers = (lambda x: x, lambda x: [x], lambda x: {"k": (1, x)}, lambda x: Pair(x, [x]))
for make in (dict, OrderedDict, lambda **parts: defaultdict(list, parts)):
    for around in containers:
        for at in range(1, 9):
            left = -1
            given = make(a=Node(), b=X)
            kept = plugrt.jit(copy).lower(around(given)).compile()
            for call in (plugrt.jit(copy), kept):
                given, left = make(a=Node(), b=X), at
                try:
                    assert [*map(float, call(around(given)))][-1:] in ([2], [])
                except plugrt.errors.ArgumentMismatch:
                    assert call is kept  # and its key went before it was looked at
print("done")
"""


@pytest.mark.parametrize("which", ["c", "python"])
def test_a_dict_whose_keys_go_while_it_is_flattened_ends_no_process(which: str) -> None:
    """optree 0.20 crashes, up to Python 3.12, if a flatten function or a thread changes it."""
    if which == "c" and not IN_C:
        pytest.skip("no compiled core here")
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", CHANGED_BY_NODE],
        env={**os.environ, "PLUGRT_CORE": which},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout == "done\n", done.stderr[-3000:]
