"""First calls whose arguments change meanwhile: what was traced is not kept for others."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.errors import ArgumentMismatch

X, Y = (plugrt.device_put(np.full(2, n, np.float32)) for n in (3, 5))
Change = Callable[[dict[Any, Any]], None]
MOST = 24  # a first call asks for a hash up to 21 times


class Changing:
    """Whose hash changes a dict when it is asked for so often, and the next time back."""

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
    """Has the values of a dict under other keys."""
    values = [*given.values()]
    given.clear()
    given.update(zip("kn23456789abcdefghijopqrst", values, strict=False))


def add(given: dict[Any, Any]) -> None:
    """Puts another array into a dict, before the others."""
    rest = {**given}
    given.clear()
    given.update({"a": Y}, **rest)


def replace(given: dict[Any, Any]) -> None:
    """Puts a list in the place of an array."""
    given["k"] = [given["k"], Y]


def swap(given: dict[Any, Any]) -> None:
    """Has the keys in another order, with the arrays of each other."""
    given["k"], given["l"] = given.pop("l"), given.pop("k")


def described(x: Any) -> Any:
    """Returns the keys and the values of what a call was given or returned."""
    if isinstance(x, dict):
        return {key: described(value) for key, value in x.items()}
    return [*map(described, x)] if isinstance(x, list) else float(x[0])


def copied(x: dict[Any, Any], other: Any) -> Any:
    """Returns an argument anew, as a program's results."""
    return plugrt.tree.map(lambda leaf: leaf + 0, x)


def changed(form: dict[Any, Any], change: Change) -> dict[Any, Any]:
    """Returns a dict as it is after a change."""
    made = {**form}
    change(made)
    return made


BEFORE = {"l": X, "k": Y}
changes = pytest.mark.parametrize("change", [turn, add, replace, swap])


@changes
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("is_static", [False, True])
def test_what_is_kept_is_of_what_was_traced(change: Change, is_static: bool, back: bool) -> None:
    for left in range(1, MOST):
        given = {**BEFORE}
        changing = Changing(given, change, left, back)
        other: Any = changing if is_static else {changing: X}
        copy = plugrt.jit(copied, static_argnums=1 if is_static else ())
        copy(given, other)
        for form in (BEFORE, changed(BEFORE, change), BEFORE):
            assert described(copy(form, other)) == described(form), left


@changes
def test_what_a_compiled_function_keeps(change: Change) -> None:
    for left in range(1, MOST):
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
def test_what_control_flow_keeps(change: Change) -> None:
    def copy(other: Any, x: Any) -> Any:
        return copied(x, other)

    after = changed(BEFORE, change)
    for left in range(1, MOST):
        given = {**BEFORE}
        other = {Changing(given, change, left): X}
        seen = described(plugrt.lax.cond(True, copy, copy, other, given))
        assert seen in (described(BEFORE), described(after))
        for form in (BEFORE, after, BEFORE):
            found = plugrt.lax.cond(True, copy, copy, other, form)
            assert described(found) == described(form)


def test_what_is_donated_is_of_what_was_traced() -> None:
    """With a part more or less before it, another argument would be donated."""
    for left in range(1, MOST):
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
    """Has the same values under the same keys, in another order."""
    given["l"] = given.pop("l")


def grow(given: dict[Any, Any]) -> None:
    """Has more keys than there were."""
    given.update(zip("mno", [X] * 3, strict=True))


@pytest.mark.parametrize("change", [turn, add, replace, swap, reorder, grow, dict.clear])
@pytest.mark.parametrize("is_nested", [False, True])
def test_a_container_changes_while_a_known_call_is_taken_apart(
    change: Change, is_nested: bool
) -> None:
    """The collector does it, which Python up to 3.11 runs where an object is made."""
    copy = plugrt.jit(lambda x: copied(x, None))
    before = {**BEFORE, **{str(i): X for i in range(24)}}  # of smaller tuples Python keeps some
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
        for at in range(1, 3 * MOST):
            given = {**before}
            argument = outer(given)
            for form in (before, after):  # after which no call is like the last one
                copy(outer(form))
            held[:] = [set() for _ in range(at % 3)]  # of which the collector is run the sooner
            gc.set_threshold(1)
            left = at // 3
            found = copy(argument)
            left = 0
            gc.set_threshold(*threshold)
            assert described(found) in wanted
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(collecting)
