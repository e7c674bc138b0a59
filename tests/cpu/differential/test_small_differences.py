"""Differences from JAX that its own tests find, in both libraries."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt.errors import NotAnArray
from plugrt.sharding import Mesh, PartitionSpec
from support.jax_oracle import jax

X = np.arange(100, dtype=np.float32)


class Letter(enum.Enum):
    A = 0
    B = 1


class Slotted:
    """A function without weak references."""

    __slots__ = ()

    def __call__(self, x: Any) -> Any:
        return x + 1


def test_accepted_here_alone() -> None:
    """What `jit` refuses in JAX.

    Differs from JAX: a dict of keys without an order as an argument of `jit`, and a function that
    has no weak references | refused | accepted.
    """
    calls: list[Callable[[Any], Any]] = [
        lambda lib: lib.jit(lambda d: d[Letter.B])({Letter.A: 1.0, Letter.B: 2.0}),
        lambda lib: lib.jit(Slotted())(1.0),
    ]
    for call in calls:
        assert call(plugrt) == 2
        with pytest.raises((TypeError, ValueError)):
            call(jax)


def test_a_deleted_array_has_a_text() -> None:
    """A debugger shows it.

    Differs from JAX: `repr` of a deleted array | a RuntimeError | says that it is deleted.
    """
    ours, theirs = plugrt.device_put(X), jax.device_put(X)
    ours.delete()
    theirs.delete()
    assert repr(ours) == "<deleted Array of shape (100,), dtype=float32>"
    with pytest.raises(RuntimeError):
        repr(theirs)


def test_dtypes_are_numpys() -> None:
    """They are objects of `numpy.dtype`.

    Differs from JAX: a dtype called as a function, `float32(x)` | converts | is not callable:
    `x.astype(xp.float32)` converts.
    """
    assert jax.jit(lambda x: jax.numpy.int8(x))(X).dtype == np.int8
    assert plugrt.jit(lambda x: x.astype(xp.int8))(X).dtype == np.int8
    with pytest.raises(TypeError, match="not callable"):
        plugrt.jit(lambda x: xp.int8(x))(X)


def test_arrays_that_a_function_closes_over_are_parameters() -> None:
    """They are not written into the module.

    Differs from JAX: arrays that a function closes over, in `lower(…).as_text()` | constants |
    further arguments of `main`.
    """
    for lib, constants in ((plugrt, 0), (jax, 1)):
        y = lib.device_put(X)
        captured = lib.jit(lambda x: x + y).lower(X).as_text()  # noqa: B023
        assert captured.count("stablehlo.constant") == constants
        assert ("%arg1" in captured) is (not constants)


def test_equal_meshes_and_specs_are_two_objects() -> None:
    """They are compared by value.

    Differs from JAX: equal `Mesh` objects, and equal `PartitionSpec` objects | are one object | are
    equal.
    """
    specs = PartitionSpec("x", None), PartitionSpec("x", None)
    meshes = [Mesh(np.array(plugrt.devices()[:2]), "x") for _ in range(2)]
    assert specs[0] == specs[1]
    assert specs[0] is not specs[1]
    assert meshes[0] == meshes[1]
    assert meshes[0] is not meshes[1]
    theirs = [jax.sharding.Mesh(np.array(jax.devices()[:2]), "x") for _ in range(2)]
    assert theirs[0] is theirs[1]


def test_a_struct_is_no_argument_of_a_call() -> None:
    """Not while a function around the call is traced, either.

    Differs from JAX: a `ShapeDtypeStruct` as an argument of a jitted function within
    `eval_shape` | stands for an array | `NotAnArray`.
    """

    def shape(lib: Any, evaluate: Callable[[Any], Any]) -> Any:
        inner = lib.jit(lambda x: x + 1)
        return evaluate(lambda: inner(lib.ShapeDtypeStruct((3,), np.float32)))

    assert shape(jax, jax.eval_shape).shape == (3,)
    with pytest.raises(NotAnArray, match="ShapeDtypeStruct"):
        shape(plugrt, lambda f: plugrt.jit(f).eval_shape())


def test_the_number_of_devices_in_a_module() -> None:
    """Same as JAX: `mhlo.num_partitions` and `mhlo.num_replicas` in `lower(…).as_text()`."""
    for module in (plugrt, jax):
        text = module.jit(lambda x: x + 1).lower(X).as_text()
        assert "{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32}" in text
