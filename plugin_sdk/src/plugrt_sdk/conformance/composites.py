"""`SAMPLES`: programs of many operations, as in models and libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.conformance.operations.contractions import HIGHEST, convolve
from plugrt_sdk.conformance.operations.sample import Samples, wide
from plugrt_sdk.testing.program_text import ProgramText, Value, body, i64s, typed

SAMPLES = Samples()
_F32 = ("float32",)


class _Writer:
    """Writes operations on float32, whose values later operations use or the program returns."""

    def __init__(self, program: ProgramText) -> None:
        self._program = program

    def apply(
        self, name: str, operands: Sequence[Value], shape: Sequence[int], attributes: str = "",
        regions: Sequence[str] = (), *, dtype: str = "float32", last: bool = False,
    ) -> Value:  # fmt: skip
        """Adds an operation with one result; the program returns the ``last`` ones."""
        [made] = self._program.apply(
            name, operands, [typed(shape, dtype)], attributes, regions, returned=last
        )
        return made

    def dot(self, x: Value, y: Value, shape: Sequence[int], axes: tuple[int, int] = (1, 0),
            **rest: Any) -> Value:  # fmt: skip
        """Adds a matrix product that sums over these axes."""
        numbers = (
            f"#stablehlo.dot<lhs_contracting_dimensions = [{axes[0]}], "
            f"rhs_contracting_dimensions = [{axes[1]}]>"
        )
        attributes = f"dot_dimension_numbers = {numbers}, {HIGHEST}"
        return self.apply("dot_general", [x, y], shape, attributes, **rest)

    def reduce(self, name: str, x: Value, start: str, axis: int, shape: Sequence[int]) -> Value:
        """Adds a reduction along one axis."""
        begin = self._program.constant(start, typed((), "float32"))
        return self.apply("reduce", [x, begin], shape, f"dimensions = {i64s(axis)}",
                          [body(name, "float32")])  # fmt: skip

    def spread(self, x: Value, axes: Sequence[int], shape: Sequence[int]) -> Value:
        """Adds a broadcast; the dimensions of ``x`` become these axes of the result."""
        return self.apply("broadcast_in_dim", [x], shape, f"broadcast_dimensions = {i64s(*axes)}")

    def number(self, value: str, shape: Sequence[int]) -> Value:
        """Adds an array filled with one number."""
        return self._program.constant(value, typed(shape, "float32"))


def _normal(random: np.random.Generator, *shape: int) -> Array:
    return random.normal(size=shape).astype(np.float32)


@SAMPLES.add("attention", _F32, ulps=32, of_largest=True)
def attention(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Attention: scores of queries and keys, softmax, and the mean of the values"""
    q, k, v = _normal(random, 4, 16), _normal(random, 6, 16), _normal(random, 6, 5)
    w = _Writer(p)
    a, b, c = (p.argument(x) for x in (q, k, v))
    scores = w.apply("multiply", [w.dot(a, b, (4, 6), (1, 1)), w.number("0.25", (4, 6))], (4, 6))
    most = w.spread(w.reduce("maximum", scores, "0xFF800000", 1, (4,)), (0,), (4, 6))
    weights = w.apply("exponential", [w.apply("subtract", [scores, most], (4, 6))], (4, 6))
    total = w.spread(w.reduce("add", weights, "0.0", 1, (4,)), (0,), (4, 6))
    w.dot(w.apply("divide", [weights, total], (4, 6)), c, (4, 5), last=True)
    raw = wide(q) @ wide(k).T * 0.25
    soft = np.exp(raw - raw.max(1, keepdims=True))
    return [soft / soft.sum(1, keepdims=True) @ wide(v)]


@SAMPLES.add("convolutional_step", _F32, ulps=64, of_largest=True)
def convolutional_step(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """A training step: convolution, bias, relu, pooling, a layer, and its weights' new values"""
    x, kernel, bias = _normal(random, 2, 8, 8, 3), _normal(random, 3, 3, 3, 4), _normal(random, 4)
    weights, target = _normal(random, 64, 5), _normal(random, 2, 5)
    w = _Writer(p)
    a, k, b, last, wanted = (p.argument(v) for v in (x, kernel, bias, weights, target))
    shape = (2, 8, 8, 4)
    convolved = w.apply(
        "convolution", [a, k], shape,
        "dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, "
        "padding = dense<1> : tensor<2x2xi64>, feature_group_count = 1 : i64, "
        f"batch_group_count = 1 : i64, {HIGHEST}",
    )  # fmt: skip
    biased = w.apply("add", [convolved, w.spread(b, (3,), shape)], shape)
    active = w.apply("maximum", [biased, w.number("0.0", shape)], shape)
    pooled = w.apply(
        "reduce_window", [active, p.constant("0.0", typed((), dtype))], (2, 4, 4, 4),
        f"window_dimensions = {i64s(1, 2, 2, 1)}, window_strides = {i64s(1, 2, 2, 1)}",
        [body("maximum", dtype)],
    )  # fmt: skip
    features = w.apply("reshape", [pooled], (2, 64))
    error = w.apply("subtract", [w.dot(features, last, (2, 5)), wanted], (2, 5), last=True)
    slope = w.dot(features, error, (64, 5), (0, 0))
    step = w.apply("multiply", [slope, w.number("0.125", (64, 5))], (64, 5))
    w.apply("subtract", [last, step], (64, 5), last=True)
    found = convolve(wide(x), wide(kernel), (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), 1)
    rows = np.maximum(found + wide(bias), 0).reshape(2, 4, 2, 4, 2, 4).max((2, 4)).reshape(2, 64)
    missed = rows @ wide(weights) - wide(target)
    return missed, wide(weights) - 0.125 * rows.T @ missed


_LSTM = """^bb0(%t: tensor<i32>, %h: tensor<2x4xf32>, %c: tensor<2x4xf32>):
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %row = stablehlo.dynamic_slice XS, %t, %zero, %zero, sizes = [1, 2, 3]
    : (tensor<5x2x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x3xf32>
  %x = stablehlo.reshape %row : (tensor<1x2x3xf32>) -> tensor<2x3xf32>
  %a = stablehlo.dot_general %x, WX, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST]
    : (tensor<2x3xf32>, tensor<3x16xf32>) -> tensor<2x16xf32>
  %b = stablehlo.dot_general %h, WH, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST]
    : (tensor<2x4xf32>, tensor<4x16xf32>) -> tensor<2x16xf32>
  %z = stablehlo.add %a, %b : tensor<2x16xf32>
  %zi = stablehlo.slice %z [0:2, 0:4] : (tensor<2x16xf32>) -> tensor<2x4xf32>
  %zf = stablehlo.slice %z [0:2, 4:8] : (tensor<2x16xf32>) -> tensor<2x4xf32>
  %zg = stablehlo.slice %z [0:2, 8:12] : (tensor<2x16xf32>) -> tensor<2x4xf32>
  %zo = stablehlo.slice %z [0:2, 12:16] : (tensor<2x16xf32>) -> tensor<2x4xf32>
  %i = stablehlo.logistic %zi : tensor<2x4xf32>
  %f = stablehlo.logistic %zf : tensor<2x4xf32>
  %g = stablehlo.tanh %zg : tensor<2x4xf32>
  %o = stablehlo.logistic %zo : tensor<2x4xf32>
  %fc = stablehlo.multiply %f, %c : tensor<2x4xf32>
  %ig = stablehlo.multiply %i, %g : tensor<2x4xf32>
  %c2 = stablehlo.add %fc, %ig : tensor<2x4xf32>
  %tc = stablehlo.tanh %c2 : tensor<2x4xf32>
  %h2 = stablehlo.multiply %o, %tc : tensor<2x4xf32>
  %t2 = stablehlo.add %t, %one : tensor<i32>
  stablehlo.return %t2, %h2, %c2 : tensor<i32>, tensor<2x4xf32>, tensor<2x4xf32>"""
_BEFORE_FIVE = """^bb0(%t: tensor<i32>, %h: tensor<2x4xf32>, %c: tensor<2x4xf32>):
  %five = stablehlo.constant dense<5> : tensor<i32>
  %go = stablehlo.compare LT, %t, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %go : tensor<i1>"""


@SAMPLES.add("lstm", _F32, ulps=64, of_largest=True)
def lstm(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """A loop over five steps of an LSTM cell, whose arrays are from outside the loop"""
    xs, wx, wh = _normal(random, 5, 2, 3), _normal(random, 3, 16), _normal(random, 4, 16)
    names = {"XS": p.argument(xs)[0], "WX": p.argument(wx)[0], "WH": p.argument(wh)[0]}
    step = _LSTM
    for word, name in names.items():
        step = step.replace(word, name)
    zeros = [p.constant("0.0", typed((2, 4), dtype)) for _ in range(2)]
    start = p.constant("0", typed((), "int32"))
    kinds = [start[1], zeros[0][1], zeros[1][1]]
    p.apply("while", [start, *zeros], kinds, "", [_BEFORE_FIVE, step])
    h = c = np.zeros((2, 4))
    for x in wide(xs):
        z = x @ wide(wx) + h @ wide(wh)
        i, f, o = (1 / (1 + np.exp(-z[:, 4 * n : 4 * n + 4])) for n in (0, 1, 3))
        c = f * c + i * np.tanh(z[:, 8:12])
        h = o * np.tanh(c)
    return np.int32(5), h, c


@SAMPLES.add("sort_merge", ("int32", "float32"))
def sort_merge(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Two sorted tables merged by their keys, stably, and the keys' greatest rows gathered"""
    left, right = (np.sort(random.integers(0, 9, 12)).astype(dtype) for _ in range(2))
    rows = np.arange(24, dtype=np.int32)
    a, b, r = (p.argument(x) for x in (left, right, rows))
    t, n, bit = typed((), dtype), typed((), "int32"), typed((), "bool")
    [keys] = p.apply("concatenate", [a, b], [typed((24,), dtype)], "dimension = 0 : i64",
                     returned=False)  # fmt: skip
    less = (
        f"^bb0(%x: {t}, %y: {t}, %i: {n}, %j: {n}): %c = stablehlo.compare LT, %x, %y : ({t}, {t}) "
        f"-> {bit} stablehlo.return %c : {bit}"
    )
    _, places = p.apply("sort", [keys, r], [typed((24,), dtype), typed((24,), "int32")],
                        "dimension = 0 : i64, is_stable = true", [less])  # fmt: skip
    [index] = p.apply("reshape", [places], [typed((24, 1), "int32")], returned=False)
    p.apply("gather", [keys, index], [typed((24,), dtype)],
            "dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], "
            f"start_index_map = [0], index_vector_dim = 1>, slice_sizes = {i64s(1)}")  # fmt: skip
    both = np.concatenate([left, right])
    order = np.argsort(both, kind="stable")
    return both[order], order.astype(np.int32), both[order]


@SAMPLES.add("fft_convolution", _F32, ulps=32, of_largest=True, interpreted=False)
def fft_convolution(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """The convolution of two signals through their transforms"""
    x, y = _normal(random, 11), _normal(random, 6)
    w, zero, spectra = _Writer(p), p.constant("0.0", typed((), dtype)), []
    for signal in (x, y):
        padding = f"edge_padding_low = {i64s(0)}, edge_padding_high = {i64s(16 - len(signal))}"
        whole = w.apply("pad", [p.argument(signal), zero], (16,),
                        f"{padding}, interior_padding = {i64s(0)}")  # fmt: skip
        spectra.append(w.apply("fft", [whole], (9,), _fft("RFFT"), dtype="complex64"))
    product = w.apply("multiply", spectra, (9,), dtype="complex64")
    w.apply("fft", [product], (16,), _fft("IRFFT"), last=True)
    return [np.convolve(wide(x), wide(y))]


def _fft(kind: str) -> str:
    return f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {i64s(16)}"


_KEYS = ((0, 0xFFFFFFFF, 0x13198A2E), (0, 0xFFFFFFFF, 0x03707344))
_COUNTERS = ((0, 0xFFFFFFFF, 0x243F6A88), (0, 0xFFFFFFFF, 0x85A308D3))
_KNOWN = ((0x6B200159, 0x1CB996FC, 0xC4923A9C), (0x99BA4EFE, 0xBB002BE7, 0x483DF7A0))
"""Of Random123's file kat_vectors, ``threefry2x32 20``: https://github.com/DEShawResearch/random123."""
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


@SAMPLES.add("threefry", ("uint32",))
def threefry(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Threefry's twenty rounds give the published numbers"""
    kind = typed((3,), dtype)
    k0, k1, x0, x1 = (p.argument(np.array(v, np.uint32)) for v in (*_KEYS, *_COUNTERS))

    def apply(name: str, *operands: Value) -> Value:
        return p.apply(name, operands, [kind], returned=False)[0]

    def number(value: int) -> Value:
        return p.constant(str(value), kind)

    keys = (k0, k1, apply("xor", apply("xor", k0, k1), number(0x1BD11BDA)))
    x0, x1 = apply("add", x0, k0), apply("add", x1, k1)
    for group in range(5):
        for turn in _ROTATIONS[group % 2]:
            x0 = apply("add", x0, x1)
            up, down = (
                apply("shift_left", x1, number(turn)),
                apply("shift_right_logical", x1, number(32 - turn)),
            )
            x1 = apply("xor", apply("or", up, down), x0)
        x0 = apply("add", x0, keys[(group + 1) % 3])
        x1 = apply("add", apply("add", x1, keys[(group + 2) % 3]), number(group + 1))
    zero = number(0)
    for value in (x0, x1):
        p.apply("or", [value, zero], [kind])
    return [np.array(numbers, np.uint32) for numbers in _KNOWN]
