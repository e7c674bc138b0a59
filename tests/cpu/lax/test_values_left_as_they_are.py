"""`stop_gradient`, `stage`, `dce_sink`, `pcast`, `empty`, `broadcast_like`, `index_take`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax
from plugrt.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    DtypeError,
    NotAnArray,
    ShapeError,
    UnboundAxis,
)
from plugrt.sharding import NamedSharding
from plugrt.sharding import PartitionSpec as P
from support.behaviour import behaviour
from support.jax_oracle import jax, same, same_at_once

V = np.float32([1, 2, 3])
DTYPES = [
    "bool", "int4", "int8", "uint16", "int32", "uint32", "float8_e4m3fn", "bfloat16", "float16",
    "float32", "complex64",
]  # fmt: skip


@behaviour(19, "`lax.stop_gradient`, `stage`, `pcast` and `dce_sink` leave values as they are")
def test_values_stay_as_they_are() -> None:
    array = xp.asarray(V)
    assert lax.stop_gradient({"a": array, "b": [1, None]}) == {"a": array, "b": [1, None]}
    assert lax.dce_sink([array, 1]) is None
    assert lax.pcast(array, (), to="varying") is array
    for x in (2, 2.5, True, np.int16(3), V):
        same(lax.stage(x), jax.lax.stage(x))
        assert (lax.stage(x) + np.float16(1)).dtype == (jax.lax.stage(x) + np.float16(1)).dtype

    def together(v: Any) -> Any:
        lax.dce_sink(xp.sin(v))
        return lax.stop_gradient(v) + lax.stage(1)

    same(plugrt.jit(together)(V), V + 1)
    assert "sine" not in plugrt.jit(together).lower(V).as_text()


def test_dce_sink_keeps_operations_in_the_program() -> None:
    def kept(v: Any) -> Any:
        lax.dce_sink(xp.sin(v), prevent_mlir_dce=True)
        return v + 1

    text = plugrt.jit(kept).lower(V).as_text()
    assert "stablehlo.sine" in text
    assert "@dce_sink" in text


def test_a_cast_value_may_differ_from_device_to_device() -> None:
    over = {"mesh": plugrt.make_mesh((4,), ("i",)), "in_specs": P("i"), "out_specs": P("i")}
    cast = plugrt.shard_map(lambda v: lax.pcast(lax.psum(v, "i"), "i", to="varying"), **over)
    same(cast(np.arange(4, dtype=np.float32)), np.full(4, 6, np.float32))
    rows = plugrt.pmap(lambda v: lax.pcast(v, "i", to="varying"), "i")
    same(rows(np.arange(4)), np.arange(4))


@behaviour(19, "`lax.broadcast_like`, `empty` and `index_take` accept every dtype")
@pytest.mark.parametrize("dtype", DTYPES)
def test_results_are_jaxs_for_each_dtype(dtype: str) -> None:
    kind: Any = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = np.arange(24).astype(kind).reshape(2, 3, 4)
    same(lax.empty((2, 3), kind), jax.lax.empty((2, 3), kind))
    shapes = ((4,), (3, 1), (1, 3, 4))
    parts = [x.ravel()[: int(np.prod(shape))].reshape(shape) for shape in shapes]
    same(lax.broadcast_like(parts[0], x), jax.lax.broadcast_like(parts[0], x))
    same_at_once(lambda of, x, parts: [of.broadcast_like(part, x) for part in parts], x, parts)
    indices = [np.array([1, -2, 5, 0]), np.array([-1, 7, 2, 3])]
    indices = [i.astype(np.int32) for i in indices]
    same(lax.index_take(x, indices, (0, 2)), jax.lax.index_take(x, indices, (0, 2)))
    taken = ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))
    same_at_once(
        lambda of, x, indices: [of.index_take(x, indices[: len(axes)], axes) for axes in taken],
        x, indices,
    )  # fmt: skip


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64])
def test_indices_of_each_dtype_begin_again_behind_the_end(kind: Any) -> None:
    places = np.array([0, 7, 5], kind)
    if np.dtype(kind).kind == "i":
        places = np.append(places, np.array([-1, -7], kind))
    x = np.arange(15.0).reshape(5, 3)
    same(lax.index_take(x, [places], (0,)), x[places.astype(np.int64) % 5])
    same(plugrt.jit(lambda v: lax.index_take(x, [v], (-1,)))(places), x.T[places.astype(int) % 3])


def test_axes_in_any_order() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    found = lax.index_take(x, [np.array([3, 0]), np.array([1, 0])], (2, 0))
    same(found, np.stack([x[1, :, 3], x[0, :, 0]]))


CONVOLUTIONS = [
    ((1, 8, 8, 3), (3, 3, 3, 5), (1, 2), "SAME"), ((2, 9, 7, 3), (2, 3, 3, 4), (2, 3), "VALID"),
    ((2, 9, 7, 3), (4, 3, 3, 4), (3, 1), "SAME"),
    ((2, 9, 7, 3), (1, 2, 3, 4), (1, 1), [(1, 2), (0, 3)]),
]  # fmt: skip


@behaviour(19, "shapes of convolutions and windows, without arrays, as `jax.lax` computes them")
@pytest.mark.parametrize("case", range(len(CONVOLUTIONS)))
def test_shapes_are_jaxs(case: int) -> None:
    lhs, rhs, strides, padding = CONVOLUTIONS[case]
    names = ("NHWC", "HWIO", "NHWC")
    assert lax.conv_general_permutations(names) == jax.lax.conv_general_permutations(names)
    for function in ("conv_general_shape_tuple", "conv_transpose_shape_tuple"):
        arguments = (lhs, rhs, strides, padding, names)
        assert getattr(lax, function)(*arguments) == getattr(jax.lax, function)(*arguments)
    first, second = (lhs[0], lhs[3], *lhs[1:3]), (rhs[3], rhs[2], *rhs[:2])
    found = lax.conv_shape_tuple(first, second, strides, padding)
    assert found == jax.lax.conv_shape_tuple(first, second, strides, padding)
    ones = (np.ones(first, np.float32), np.ones(second, np.float32))
    assert found == lax.conv_general_dilated(*ones, strides, padding).shape
    made = lax.conv_transpose(np.ones(lhs, np.float32), np.ones(rhs, np.float32), strides, padding)
    assert lax.conv_transpose_shape_tuple(lhs, rhs, strides, padding, names) == made.shape or (
        padding not in ("SAME", "VALID")
    )
    for name in ("SAME", "same_lower", "VALID"):
        arguments = (lhs[1:3], rhs[:2], strides, name)
        assert lax.padtype_to_pads(*arguments) == jax.lax.padtype_to_pads(*arguments)
    window = (lhs[1:3], (3, 2), strides, ((1, 1), (0, 2)), (1, 2), (2, 1))
    assert lax.reduce_window_shape_tuple(*window) == jax.lax.reduce_window_shape_tuple(*window)
    same(lax.shape_as_value(lhs), np.asarray(jax.lax.shape_as_value(lhs)))
    assert lax.shape_as_value((2**40,)).dtype == np.int64


def test_a_constraint_is_in_lax_as_in_jax() -> None:
    rows = NamedSharding(plugrt.make_mesh((4,), ("x",)), P("x"))
    assert lax.with_sharding_constraint is plugrt.with_sharding_constraint
    double = plugrt.jit(lambda v: lax.with_sharding_constraint(v * 2, rows))
    assert double(np.ones(8, np.float32)).sharding == rows
    found = lax.with_sharding_constraint(
        {"a": np.ones(8, np.float32), "b": 1}, {"a": rows, "b": None}
    )
    assert found["a"].sharding == rows
    assert found["b"] == 1


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "text that has no gradient": (
        lambda: lax.stop_gradient({"a": "b"}), NotAnArray, r"x\['a'\] is 'b' of type str"),
    "a list that is staged": (lambda: lax.stage([1]), NotAnArray, "argument 'x' of stage"),
    "text in a sink": (lambda: lax.dce_sink("a"), NotAnArray, "dce_sink takes arrays"),
    "no flag": (lambda: lax.dce_sink(V, prevent_mlir_dce="yes"), ArgumentTypeError, "True or Fal"),
    "another type": (lambda: lax.pcast(V, "i", to="fixed"), ArgumentError, "'varying', 'reduced'"),
    "a set of axes": (lambda: lax.pcast(V, {"i"}, to="varying"), ArgumentTypeError, "tuple"),
    "no axis at all": (lambda: lax.pcast(V, "i", to="reduced"), UnboundAxis, "'i'"),
    "an axis that is not there": (
        lambda: plugrt.jit(lambda v: lax.pcast(v, "i", to="varying"))(V), UnboundAxis, "'i'"),
    "what does not fit": (
        lambda: lax.broadcast_like(V, np.ones((3, 2))), ShapeError, r"\(3,\) to \(3, 2\)"),
    "a negative size": (lambda: lax.empty((-1,), np.int32), ShapeError, "negative"),
    "no indices": (lambda: lax.index_take(V, [], ()), ArgumentError, "one or more"),
    "indices of too few axes": (
        lambda: lax.index_take(np.eye(3), [V.astype(int)], (0, 1)), ArgumentError, "1 of them"),
    "floats as indices": (lambda: lax.index_take(V, [V], (0,)), DtypeError, "integers"),
    "indices in a matrix": (
        lambda: lax.index_take(V, [np.eye(2, dtype=int)], (0,)), ShapeError, "vectors of one le"),
    "an axis too far": (lambda: lax.index_take(V, [np.arange(2)], (1,)), AxisError, "index_take"),
    "an empty axis": (
        lambda: lax.index_take(np.ones((0, 2)), [np.arange(2)], (0,)), ShapeError, "no elements"),
    "a padding by another name": (
        lambda: lax.padtype_to_pads((3,), (2,), (1,), "FULL"), ArgumentError, "'SAME', 'SAME_LO"),
    "a padding that takes all off": (
        lambda: lax.conv_shape_tuple((1, 1, 2), (1, 1, 1), (1,), [(-2, -2)]),
        ShapeError, "removes more than"),
    "groups that do not divide": (
        lambda: lax.conv_shape_tuple((3, 1, 2), (1, 1, 1), (1,), "SAME", 2),
        ShapeError, "multiple of 2 groups"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_calls_are_named(case: str) -> None:
    call, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        call()
