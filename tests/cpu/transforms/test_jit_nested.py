"""`jit` in `jit`: one function in the module for each signature, captures, and failures.

Same as JAX: nested `jit` calls are traced once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plugrt import jit
from support.collector import uncollected
from support.ops import add

X = np.arange(3, dtype=np.float32)


def functions(jitted: Any, *args: Any) -> int:
    """Returns the number of functions in the module besides main."""
    return jitted.lower(*args).as_text().count("func.func private")


def test_a_captured_name_that_is_bound_anew_between_calls() -> None:
    """The two calls capture different arrays, so the module needs a function for each."""

    @jit
    def outer(a: Any, b: Any) -> Any:
        y = a
        inner = jit(lambda x: add(x, y))
        first = inner(a)
        y = b
        return first, inner(a)

    first, second = outer(X, 10 * X)
    np.testing.assert_array_equal(first, 2 * X)
    np.testing.assert_array_equal(second, 11 * X)


def test_inline() -> None:
    inner = jit(lambda x: add(x, 1), inline=True)
    outer = jit(lambda x: inner(inner(x)))
    np.testing.assert_array_equal(outer(X), X + 2)
    assert functions(outer, X) == 0


def test_endless_recursion_ends_as_in_python() -> None:
    @jit
    def f(x: Any) -> Any:
        return f(x)

    with uncollected(), pytest.raises(RecursionError):
        f(X)
    np.testing.assert_array_equal(jit(lambda x: add(x, 1))(X), X + 1)
