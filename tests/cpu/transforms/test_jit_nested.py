"""`jit` in `jit`: one function of the module for each signature, captures, and failures.

Same as JAX: nested `jit` calls are traced once.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from plugrt import device_put, jit
from plugrt.errors import LeakedTracer
from support.collector import uncollected
from support.ops import add, mul, sin

X = np.arange(3, dtype=np.float32)


def functions(jitted: Any, *args: Any) -> int:
    """Returns how many functions the module has besides main."""
    return jitted.lower(*args).as_text().count("func.func private")


def test_called_once_for_a_signature() -> None:
    traced = []

    @jit
    def inner(x: Any, y: Any) -> Any:
        traced.append(x.shape)
        return add(x, y)

    @jit
    def outer(x: Any) -> Any:
        return inner(inner(x, x), inner(x, x))

    np.testing.assert_array_equal(outer(X), 4 * X)
    assert traced == [(3,)]
    assert functions(outer, X) == 1


def test_other_signatures_are_other_functions() -> None:
    inner = jit(lambda x, n=1: mul(x, n), static_argnums=1)
    outer = jit(lambda x: add(inner(inner(x, 2), 3), inner(x.shape[0], 2)))
    np.testing.assert_array_equal(outer(X), 6 * X + 6)
    assert functions(outer, X) == 3


def test_jits_of_one_function_share_one() -> None:
    def f(x: Any) -> Any:
        return add(x, 1)

    assert functions(jit(lambda x: jit(f)(jit(f)(x))), X) == 1


def test_weak_arguments_and_results() -> None:
    inner = jit(lambda x, y: mul(x, y))
    half = np.ones(2, np.float16)
    assert jit(lambda x: inner(x, 2.0))(half).dtype == np.float16
    same = jit(lambda y: y)
    assert jit(lambda x: mul(x, same(2.0)))(half).dtype == np.float16
    assert jit(lambda x, y: inner(x, y))(half, 2.0).dtype == np.float16


def test_pytrees_and_keywords_through_nested_calls() -> None:
    inner = jit(lambda p, *, scale: {"out": [mul(p["w"], scale), None], "n": p["n"]})
    out = jit(lambda p: inner(p, scale=inner(p, scale=2)["n"]))({"w": X, "n": 3})
    np.testing.assert_array_equal(out["out"][0], 3 * X)
    assert out["out"][1] is None


def test_captured_tracers_of_the_function_around() -> None:
    @jit
    def outer(x: Any, y: Any) -> Any:
        z = sin(y)

        @jit
        def inner(a: Any) -> Any:
            @jit
            def innermost(b: Any) -> Any:
                return add(add(b, z), x)

            return innermost(mul(a, x))

        return add(inner(x), inner(y))

    x, y = X, X + 1
    expected = (x * x + np.sin(y) + x) + (y * x + np.sin(y) + x)
    np.testing.assert_allclose(outer(x, y), expected, rtol=1e-6)


def test_a_captured_name_that_is_bound_anew_between_calls() -> None:
    """The function of the module for the first call closes over another array than the second."""

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


def test_a_captured_tracer_returned_as_it_is() -> None:
    @jit
    def outer(x: Any) -> Any:
        y = add(x, 1)
        return jit(lambda: (y, x))()

    y, x = outer(X)
    np.testing.assert_array_equal(y, X + 1)
    np.testing.assert_array_equal(x, X)


def test_captured_arrays_and_constants() -> None:
    w, big = device_put(X), np.arange(3000.0)
    inner = jit(lambda x: (add(mul(x, w), w), add(big, big)))
    one, two = jit(lambda x: (inner(x), inner(add(x, 1))))(X)
    np.testing.assert_array_equal(one[0], X * X + X)
    np.testing.assert_array_equal(two[0], (X + 1) * X + X)
    np.testing.assert_array_equal(two[1], big + big)


def test_inline() -> None:
    inner = jit(lambda x: add(x, 1), inline=True)
    outer = jit(lambda x: inner(inner(x)))
    np.testing.assert_array_equal(outer(X), X + 2)
    assert functions(outer, X) == 0


def test_recursion() -> None:
    @functools.partial(jit, static_argnums=1)
    def power(x: Any, n: int) -> Any:
        return x if n == 1 else mul(x, power(x, n - 1))

    np.testing.assert_array_equal(power(X, 5), X**5)


def test_endless_recursion_ends_as_in_python() -> None:
    @jit
    def f(x: Any) -> Any:
        return f(x)

    with uncollected(), pytest.raises(RecursionError):
        f(X)
    np.testing.assert_array_equal(jit(lambda x: add(x, 1))(X), X + 1)


@pytest.mark.parametrize("depth", [1, 3])
def test_exceptions_that_are_caught_leave_a_sound_module(depth: int) -> None:
    w = device_put(X)

    def failing(n: int) -> Any:
        @jit
        def inner(x: Any) -> Any:
            y = add(mul(x, w), 1)
            if n > 1:
                return failing(n - 1)(y)
            raise ValueError("half-way")

        return inner

    @jit
    def outer(x: Any) -> Any:
        before = add(x, 1)
        try:
            failing(depth)(before)
        except ValueError:
            after = mul(before, w)
        return add(after, before)

    np.testing.assert_array_equal(outer(X), (X + 1) * X + X + 1)
    assert functions(outer, X) == 0


def test_a_tracer_of_a_failed_inner_function_is_refused() -> None:
    kept: list[Any] = []

    @jit
    def inner(x: Any) -> Any:
        kept.append(add(x, 1))
        raise ValueError

    @jit
    def outer(x: Any) -> Any:
        with pytest.raises(ValueError):
            inner(x)
        return add(x, kept[0])

    with pytest.raises(LeakedTracer, match="outside"):
        outer(X)


def test_a_tracer_kept_between_calls_of_an_inner_function_is_refused() -> None:
    kept: list[Any] = []

    @jit
    def inner(x: Any) -> Any:
        kept.append(add(x, 1))
        return x

    @jit
    def outer(x: Any) -> Any:
        inner(x)
        return add(x, kept[0])

    with pytest.raises(LeakedTracer):
        outer(X)
    np.testing.assert_array_equal(jit(lambda x: add(x, 1))(X), X + 1)
