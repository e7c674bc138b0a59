"""Programs of many parameters get them as one tuple if the backend requests it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import jit, pmap, serialize_executable
from plugrt.errors import InvalidArgument
from plugrt.execution.placement.plan import is_tuple_program
from plugrt.interface import CompileOptions
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import BackendClient
from support.behaviour import behaviour
from support.exported import Exported

X = np.arange(3, dtype=np.float32)


@pytest.fixture
def tupled(
    compiled_with: list[CompileOptions], declare: Callable[..., None]
) -> Callable[[], list[bool]]:
    """Lists whether compilations requested one tuple, which the backend needs above 100."""
    declare(tuple_arguments_above=100)
    return lambda: [options.parameter_is_tupled for options in compiled_with]


def total(*xs: Any) -> Any:
    return sum(xs[1:], xs[0])


@behaviour(
    5,
    "above the number that a backend names, a program has one tuple as its argument, and "
    "calls do not change",
    jax="the same for TPUs, above 2000; JAX asks no backend",
)
def test_calls_with_many_arguments(tupled: Callable[[], list[bool]]) -> None:
    for count in (100, 101):
        xs = [plugrt.device_put(X + i) for i in range(count)]
        expected = np.sum([X + i for i in range(count)], axis=0)
        np.testing.assert_allclose(jit(total)(*xs), expected)
        np.testing.assert_allclose(jit(total).lower(*xs).compile()(*xs), expected)
        np.testing.assert_allclose(pmap(total)(*[x[None] for x in xs])[0], expected)
    # For each count jit and its compiled stage share a compilation, and pmap makes another.
    assert sorted(tupled()) == [False] * (len(tupled()) - 2) + [True] * 2


@behaviour(5, "unused arguments do not count, and donated ones of a tuple are taken", jax="same")
def test_unused_arguments_do_not_count_and_tuples_are_donated(
    tupled: Callable[[], list[bool]],
) -> None:
    jit(lambda *xs: xs[0] + xs[1])(*[X] * 200)
    assert tupled() == [False]
    xs = [plugrt.device_put(X + i) for i in range(150)]
    np.testing.assert_allclose(
        jit(total, donate_argnums=0)(*xs), np.sum([X + i for i in range(150)], axis=0)
    )
    assert tupled() == [False, True]
    assert xs[0].is_deleted()
    assert not xs[1].is_deleted()


@behaviour(5, "saved executables accept their tuple after loading", jax="same")
def test_saved_executables_take_their_tuple(tupled: Callable[[], list[bool]]) -> None:
    """XLA's bytes do not state the tuple: a library without the option crashes at the call."""
    xs = [plugrt.device_put(X + i) for i in range(150)]
    saved = serialize_executable.serialize(jit(total).lower(*xs).compile())
    assert tupled() == [True]
    expected = np.sum([X + i for i in range(150)], axis=0)
    np.testing.assert_allclose(serialize_executable.deserialize_and_load(*saved)(*xs), expected)


@behaviour(
    5, "the number is a capability: a backend in Python, an exported one and a library state it",
    jax="the same for TPUs, above 2000; JAX asks no backend",
)  # fmt: skip
def test_the_number_is_a_capability() -> None:
    class Asking(NumpyBackend):
        tuple_arguments_above = 7

    inner = BackendClient(Asking())
    exported = Exported(lambda: BackendClient(Asking())).client()
    for client in (inner, exported):
        assert client.capabilities.tuple_arguments_above == 7
        assert is_tuple_program(client, 8)
        assert not is_tuple_program(client, 7)
        client.close()
    silent = Exported(lambda: BackendClient(NumpyBackend())).client()
    assert silent.capabilities.tuple_arguments_above is None
    silent.close()
    stated: Any = {"tuple_arguments_above": 5, "xla_version": 2}
    stating = Exported(lambda: BackendClient(NumpyBackend()), attributes=stated).client()
    assert stating.capabilities.tuple_arguments_above == 5
    stating.close()


@behaviour(5, "a backend that declares another thing than a number is refused when it starts",
           jax="JAX asks no backend")  # fmt: skip
def test_numbers_that_are_none() -> None:
    for wrong in ("7", True, -1, 1.5):
        asking = type("Asking", (NumpyBackend,), {"tuple_arguments_above": wrong})()
        says = f"declares tuple_arguments_above as {wrong!r}; it is an integer from 0 on, or None"
        with pytest.raises(InvalidArgument, match=re.escape(says)):
            BackendClient(asking)
