"""The arguments of `jit` that describe a function's arguments: accepted and refused as in JAX.

Same as JAX: `jit`: static and donated arguments by number and name, what is refused.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.errors import PlugrtError
from support.jax_oracle import jax


def plain(a: Any, b: Any, c: Any = 0) -> Any:
    return a


def positional(a: Any, /, b: Any) -> Any:
    return a


def variadic(a: Any, *args: Any) -> Any:
    return a


def generator(a: Any) -> Any:
    yield a


CASES: dict[str, Callable[[Any], Any]] = {
    "numpy integer": lambda jit: jit(plain, static_argnums=np.int64(1))(1.5, "text"),
    "numpy integers": lambda jit: jit(plain, static_argnums=(np.int32(1),))(1.5, "text"),
    "array of numbers": lambda jit: jit(plain, static_argnums=np.array([1, 2]))(1.5, "t", "u"),
    "numbers and names apart": lambda jit: jit(plain, static_argnums=0, static_argnames="b")(
        1, "text"
    ),
    "no numbers, but given": lambda jit: jit(plain, static_argnums=(), static_argnames="b")(
        1.5, "text"
    ),
    "names complete numbers": lambda jit: jit(plain, static_argnames="b")(1.5, "text"),
    "numbers complete names": lambda jit: jit(plain, static_argnums=1)(1.5, b="text"),
    "name of a positional-only": lambda jit: jit(positional, static_argnames="a"),
    "name of *args": lambda jit: jit(variadic, static_argnames="args"),
    "unknown name": lambda jit: jit(plain, static_argnames="zz"),
    "unknown donated name": lambda jit: jit(plain, donate_argnames="zz"),
    "names that are none": lambda jit: jit(plain, static_argnames=3),
    "numbers that are text": lambda jit: jit(plain, static_argnums="a"),
    "a number that is a float": lambda jit: jit(plain, static_argnums=1.5),
    "too high": lambda jit: jit(plain, static_argnums=7),
    "too low": lambda jit: jit(plain, donate_argnums=-4),
    "static and donated": lambda jit: jit(plain, static_argnums=0, donate_argnums=0),
    "staticmethod": lambda jit: jit(staticmethod(plain)),
    "generator": lambda jit: jit(generator),
    "no function": lambda jit: jit(3),
    "None": lambda jit: jit(None, static_argnums=0)(4),
    "unknown option": lambda jit: jit(plain, foo=3),
    "name of a partial": lambda jit: jit(functools.partial(plain, 1)).__name__,
    "name of a partial of a partial": lambda jit: (
        jit(functools.partial(functools.partial(plain, 1), 2)).__name__
    ),
}


def outcome(call: Callable[[Any], Any], jit: Any) -> Any:
    try:
        result = call(jit)
    except (TypeError, ValueError) as error:
        return error
    return result if isinstance(result, str) else float(result)


@pytest.mark.parametrize("case", CASES)
def test_as_jax(case: str) -> None:
    ours, theirs = outcome(CASES[case], plugrt.jit), outcome(CASES[case], jax.jit)
    if isinstance(theirs, Exception):  # plugrt's is a ValueError and a TypeError
        assert isinstance(ours, TypeError if isinstance(theirs, TypeError) else ValueError)
    else:
        assert ours == theirs


def test_device_and_backend_both() -> None:
    with pytest.raises(ValueError, match="not both"):
        plugrt.jit(plain, device=plugrt.devices()[0], backend=next(iter(plugrt.backends())))


def test_functions_that_return_no_arrays_are_refused_before_they_are_called() -> None:
    async def coroutine(a: Any) -> Any:
        return a

    async def asynchronous(a: Any) -> Any:
        yield a

    for transform in (plugrt.jit, plugrt.pmap):
        for function, what in [(generator, "generator"), (coroutine, "coroutine"),
                               (asynchronous, "asynchronous generator")]:  # fmt: skip
            with pytest.raises(TypeError, match=f"got the {what} function"):
                transform(function)
        with pytest.raises(TypeError, match="staticmethod outside"):
            transform(staticmethod(plain))


def test_a_leaked_tracer_is_what_jax_users_catch() -> None:
    kept: list[Any] = []
    plugrt.jit(lambda x: kept.append(x) or x)(1.0)
    with pytest.raises(TypeError) as caught:
        plugrt.jit(lambda x: x + kept[0])(1.0)
    assert isinstance(caught.value, PlugrtError)


@pytest.mark.parametrize("wrong", [None, 3, "f", [abs]])
def test_values_that_are_no_functions_are_refused(wrong: Any) -> None:
    for transform in (plugrt.jit, plugrt.pmap):
        with pytest.raises(TypeError, match="takes a function; got"):
            transform(wrong)
    with pytest.raises(TypeError, match="takes a function; got"):
        plugrt.jit(static_argnums=0)(wrong)
    assert plugrt.jit(static_argnums=0)(lambda n: n + 1)(3).item() == 4
