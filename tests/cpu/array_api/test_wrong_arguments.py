"""Every function of array_api, lax and random with arguments that it cannot use.

All calls of a module stand in one trace, so that nothing is compiled. Whatever is raised is
plugrt's own, or a TypeError or ValueError: never the AttributeError, IndexError, KeyError or
AssertionError of a function that did not look at what it was given.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import plugrt
import plugrt.array_api as xp
from plugrt import lax, random
from plugrt.errors import PlugrtError

WRONG = [
    None, "text", [], (), {}, object(), [1, 2], [None], (1, "a"), -1, 1.5, 1j, True, slice(None),
    b"x", xp.float32, lambda *a: a, np.ones(2), np.array("s"), 0,
]  # fmt: skip


def functions(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in dir(module):
        function = getattr(module, name)
        if not name.startswith("_") and callable(function) and not isinstance(function, type):
            yield name, function


def trials(function: Callable[..., Any], array: Any) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Yields calls in which one argument is wrong, and calls in which all are."""
    parameters = [p for p in inspect.signature(function).parameters.values() if p.kind in (0, 1, 3)]
    needed = [p for p in parameters if p.default is p.empty]
    good = {p.name: array for p in needed}
    for wrong in WRONG:
        for given in [{**good, p.name: wrong} for p in parameters] + [dict.fromkeys(good, wrong)]:
            yield (
                [given[p.name] for p in parameters if p.kind == 0 and p.name in given],
                {p.name: given[p.name] for p in parameters if p.kind != 0 and p.name in given},
            )


FROM_INSIDE = (AttributeError, IndexError, KeyError, AssertionError, RecursionError, NameError)


def is_ours(error: Exception) -> bool:
    """Whether it is of plugrt's tree, or one of the classes that say what an argument lacks."""
    return isinstance(error, PlugrtError) or not isinstance(error, FROM_INSIDE)


def leaks(module: ModuleType, array: Any) -> tuple[int, list[str]]:
    count, found = 0, []

    def body(x: Any) -> int:
        nonlocal count
        for name, function in functions(module):
            for args, kwargs in trials(function, x):
                count += 1
                try:
                    function(*args, **kwargs)
                except Exception as error:  # noqa: BLE001 - whatever it is, it is judged
                    if not is_ours(error):
                        found.append(f"{name}{args}{kwargs}: {type(error).__name__}: {error}")
        raise Done

    # What was emitted before an error stands in the module, which no one needs.
    with pytest.raises(Done):
        plugrt.jit(body).trace(array)
    return count, found


class Done(Exception):
    """All calls were made."""


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("module", [xp, lax, random], ids=lambda m: m.__name__)
def test_no_error_comes_from_inside(module: ModuleType) -> None:
    for array in (np.ones((2, 3), np.float32), np.array([0, 1], np.uint32)):
        count, found = leaks(module, array)
        assert count > 500
        assert found == []
