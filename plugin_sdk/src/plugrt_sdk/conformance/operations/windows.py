"""Samples of reduce_window, select_and_scatter, and batch normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.conformance.operations.sample import FLOATS, NUMBERS, Samples, whole, wide
from plugrt_sdk.testing.program_text import ProgramText, body, i64s, named_dtype, typed

SAMPLES = Samples()


def _windows(x: Array, sizes: Sequence[int], strides: Sequence[int], start: Any) -> Array:
    """Returns the windows of an array with one more row and column on each side."""
    padded = np.pad(x, 1, constant_values=start)
    found = np.lib.stride_tricks.sliding_window_view(padded, tuple(sizes))
    return found[:: strides[0], :: strides[1]]


def _reduce_window(p: ProgramText, dtype: str, random: np.random.Generator, name: str) -> Any:
    signed = not dtype.startswith("u")
    x, start = whole(random, (5, 6), dtype), -3 if name == "maximum" and signed else 0
    sizes, strides = (3, 2), (2, 1)
    found = _windows(wide(x), sizes, strides, start)
    wanted = found.sum((2, 3)) if name == "add" else found.max((2, 3))
    p.apply(
        "reduce_window", [p.argument(x), p.argument(named_dtype(dtype).type(start))],
        [typed(wanted.shape, dtype)],
        f"window_dimensions = {i64s(*sizes)}, window_strides = {i64s(*strides)}, "
        f"base_dilations = {i64s(1, 1)}, window_dilations = {i64s(1, 1)}, "
        "padding = dense<1> : tensor<2x2xi64>", [body(name, dtype)],
    )  # fmt: skip
    return [wanted.astype(x.dtype)]


@SAMPLES.add("reduce_window", NUMBERS)
def window_sums(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Sums of windows, with strides and padding"""
    return _reduce_window(p, dtype, random, "add")


@SAMPLES.add("reduce_window", NUMBERS, variant="maximum")
def window_maxima(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Maxima of windows, with strides and padding"""
    return _reduce_window(p, dtype, random, "maximum")


@SAMPLES.add("reduce_window", (*FLOATS, "int32", "int64", "uint8"), variant="cumulative")
def cumulative_sum(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Cumulative sums: windows as long as the array, with padding before it"""
    x = whole(random, (3, 9), dtype)
    p.apply(
        "reduce_window", [p.argument(x), p.argument(named_dtype(dtype).type(0))],
        [typed((3, 9), dtype)],
        f"window_dimensions = {i64s(1, 9)}, window_strides = {i64s(1, 1)}, "
        f"base_dilations = {i64s(1, 1)}, window_dilations = {i64s(1, 1)}, "
        "padding = dense<[[0, 0], [8, 0]]> : tensor<2x2xi64>", [body("add", dtype)],
    )  # fmt: skip
    return [np.cumsum(x, 1, dtype=x.dtype)]


@SAMPLES.add("select_and_scatter", (*FLOATS, "int32", "int64", "uint8"))
def select_and_scatter(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Each window's value added where the window has its maximum: a gradient of pooling"""
    x = random.permutation(24).reshape(4, 6).astype(named_dtype(dtype))
    source = whole(random, (2, 3), dtype)
    t, b = typed((), dtype), typed((), "bool")
    choose = (
        f"^bb0(%a: {t}, %b: {t}): %c = stablehlo.compare GE, %a, %b : ({t}, {t}) -> {b} "
        f"stablehlo.return %c : {b}"
    )
    p.apply(
        "select_and_scatter",
        [p.argument(x), p.argument(source), p.argument(named_dtype(dtype).type(0))],
        [typed((4, 6), dtype)],
        f"window_dimensions = {i64s(2, 2)}, window_strides = {i64s(2, 2)}, "
        "padding = dense<0> : tensor<2x2xi64>", [choose, body("add", dtype)],
    )  # fmt: skip
    found = np.zeros((4, 6), x.dtype)
    for i, j in np.ndindex(2, 3):
        window = x[2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
        row, column = divmod(int(window.argmax()), 2)
        found[2 * i + row, 2 * j + column] += source[i, j]
    return [found]


_EPSILON = float(np.float32(0.001))
"""The attribute's value, which is a float32 for each dtype of the arrays."""
_NORM = f"epsilon = {_EPSILON} : f32, feature_index = 1 : i64"


def _along(vector: Array) -> Array:
    return vector.astype(np.float64)[:, None]


def _normed(random: np.random.Generator, dtype: str) -> list[Array]:
    """Returns an array of 2 x 3 x 4, and scale, offset, mean and variance of its three features."""
    vectors = [random.uniform(1, 2, 3).astype(named_dtype(dtype)) for _ in range(4)]
    return [random.normal(size=(2, 3, 4)).astype(named_dtype(dtype)), *vectors]


@SAMPLES.add("batch_norm_inference", FLOATS, ulps=32, of_largest=True, interpreted=False)
def batch_norm_inference(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """With the mean and the variance given"""
    x, scale, offset, mean, variance = arrays = _normed(random, dtype)
    p.apply("batch_norm_inference", [p.argument(a) for a in arrays], [typed((2, 3, 4), dtype)],
            _NORM)  # fmt: skip
    deviation = np.sqrt(_along(variance) + _EPSILON)
    return [(wide(x) - _along(mean)) / deviation * _along(scale) + _along(offset)]


@SAMPLES.add("batch_norm_training", FLOATS, ulps=32, of_largest=True, interpreted=False)
def batch_norm_training(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """With the mean and the variance of the batch, which it gives, too"""
    x, scale, offset, *_ = arrays = _normed(random, dtype)
    p.apply("batch_norm_training", [p.argument(a) for a in arrays[:3]],
            [typed((2, 3, 4), dtype), *[typed((3,), dtype)] * 2], _NORM)  # fmt: skip
    w = x.astype(np.float64)
    mean, variance = w.mean((0, 2)), w.var((0, 2))
    normal = (w - _along(mean)) / np.sqrt(_along(variance) + _EPSILON)
    return normal * _along(scale) + _along(offset), mean, variance


@SAMPLES.add("batch_norm_grad", FLOATS, ulps=64, of_largest=True, interpreted=False)
def batch_norm_grad(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """The gradients of the array, of the scale and of the offset"""
    x, scale, _, mean, variance = _normed(random, dtype)
    given = random.normal(size=(2, 3, 4)).astype(named_dtype(dtype))
    operands = [p.argument(a) for a in (x, scale, mean, variance, given)]
    p.apply("batch_norm_grad", operands, [typed((2, 3, 4), dtype), *[typed((3,), dtype)] * 2],
            _NORM)  # fmt: skip
    g, count = given.astype(np.float64), 8
    deviation = np.sqrt(_along(variance) + _EPSILON)
    normal = (wide(x) - _along(mean)) / deviation
    by_offset, by_scale = g.sum((0, 2)), (g * normal).sum((0, 2))
    by_array = (
        _along(scale)
        / deviation
        / count
        * (count * g - by_offset[:, None] - normal * by_scale[:, None])
    )
    return by_array, by_scale, by_offset
