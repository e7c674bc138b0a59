"""Calls of every public function whose results may be weak, for both plugrt and JAX.

The arguments of each are the namespaces, a `Namespaces`, and one or two operands of any kind.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

Call = Callable[..., Any]
"""A function of `Namespaces` and operands that returns a pytree of arrays."""


class Namespaces:
    """The modules of one side, plugrt or JAX, and further arguments of calls."""

    def __init__(self, xp: Any, lax: Any, random: Any, jit: Any) -> None:
        self.xp, self.lax, self.rnd, self.jit = xp, lax, random, jit
        self.key: Any = None
        self.true: Any = None
        self.index: Any = None

    def vec(self, x: Any) -> Any:
        """Returns the operand as a vector of three."""
        return x if getattr(x, "shape", ()) == (3,) else self.xp.broadcast_to(x, (3,))

    def mat(self, x: Any) -> Any:
        """Returns the operand as a matrix of one row."""
        return self.vec(x)[None]

    def sc(self, x: Any) -> Any:
        """Returns the operand as a scalar."""
        return x[0] if getattr(x, "shape", ()) == (3,) else x

    def lit(self, x: Any) -> Any:
        """Returns a Python scalar; TypeError for anything else."""
        if isinstance(x, bool | int | float | complex) and not isinstance(x, np.generic):
            return x
        raise TypeError("no Python scalar")


def _named(module: str, name: str) -> Call:
    return lambda n, *operands: getattr(getattr(n, module), name)(*operands)


def _of_vector(name: str) -> Call:
    return lambda n, x: getattr(n.xp, name)(n.vec(x))


def _operator(function: Callable[..., Any]) -> Call:
    return lambda n, *operands: function(*operands)


def _scattering(name: str) -> Call:
    return lambda n, a, b: getattr(n.lax, name)(
        n.vec(a),
        n.xp.asarray(np.int32([[0]])),
        n.vec(b)[:1],
        n.lax.ScatterDimensionNumbers((), (0,), (0,)),
    )


_XP_ONE = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_invert", "ceil", "conj",
    "cos", "cosh", "exp", "expm1", "floor", "imag", "isfinite", "isinf", "isnan", "log", "log10",
    "log1p", "log2", "logical_not", "negative", "positive", "real", "reciprocal", "round", "sign",
    "signbit", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc", "all", "any",
    "count_nonzero", "max", "mean", "min", "prod", "ravel", "std", "sum", "var", "zeros_like",
    "ones_like", "empty_like", "asarray", "argmax", "argmin",
]  # fmt: skip
_XP_VECTOR = ["argsort", "cumulative_prod", "cumulative_sum", "diff", "flip", "sort"]
_XP_TWO = [
    "add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "copysign", "divide", "equal", "floor_divide", "greater", "greater_equal",
    "hypot", "less", "less_equal", "logaddexp", "logical_and", "logical_or", "logical_xor",
    "maximum", "minimum", "multiply", "nextafter", "not_equal", "pow", "remainder", "subtract",
]  # fmt: skip
_LAX_ONE = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i1e", "bitwise_not", "cbrt",
    "ceil", "clz", "conj", "cos", "cosh", "digamma", "erf", "erf_inv", "erfc", "exp", "exp2",
    "expm1", "floor", "imag", "is_finite", "lgamma", "log", "log1p", "logistic", "neg",
    "population_count", "real", "reciprocal", "round", "rsqrt", "sign", "sin", "sinh", "sqrt",
    "square", "tan", "tanh", "optimization_barrier",
]  # fmt: skip
_LAX_TWO = [
    "add", "atan2", "bitwise_and", "bitwise_or", "bitwise_xor", "complex", "div", "eq", "ge", "gt",
    "le", "lt", "max", "min", "mul", "ne", "nextafter", "polygamma", "pow", "rem", "shift_left",
    "shift_right_arithmetic", "shift_right_logical", "sub", "zeta",
]  # fmt: skip
_OPERATORS = [
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift",
    "rshift", "eq", "ne", "lt", "le", "gt", "ge",
]  # fmt: skip
_SCATTERS = ["scatter", "scatter_add", "scatter_mul", "scatter_max", "scatter_min"]

OF_ONE: dict[str, Call] = {
    **{f"xp.{f}": _named("xp", f) for f in _XP_ONE},
    **{f"xp.{f}": _of_vector(f) for f in _XP_VECTOR},
    **{f"lax.{f}": _named("lax", f) for f in _LAX_ONE},
    **{f"op.{f}": _operator(getattr(operator, f)) for f in ("neg", "pos", "abs", "invert")},
    "x**2": lambda n, x: x**2,
    "x**-1": lambda n, x: x**-1,
    "x**0.5": lambda n, x: x**0.5,
    "2**x": lambda n, x: 2**x,
    "2.0**x": lambda n, x: 2.0**x,
    "x**0": lambda n, x: x**0,
    "True**x": lambda n, x: True**x,
    "xp.astype": lambda n, x: n.xp.astype(n.vec(x), np.float32),
    "xp.broadcast_to": lambda n, x: n.xp.broadcast_to(x, (2, 3)),
    "xp.expand_dims": lambda n, x: n.xp.expand_dims(x, axis=0),
    "xp.matrix_transpose": lambda n, x: n.xp.matrix_transpose(n.mat(x)),
    "xp.moveaxis": lambda n, x: n.xp.moveaxis(n.mat(x), 0, 1),
    "xp.permute_dims": lambda n, x: n.xp.permute_dims(n.mat(x), (1, 0)),
    "xp.repeat": lambda n, x: n.xp.repeat(n.vec(x), 2),
    "xp.reshape": lambda n, x: n.xp.reshape(n.vec(x), (3, 1)),
    "xp.roll": lambda n, x: n.xp.roll(n.vec(x), 1),
    "xp.squeeze": lambda n, x: n.xp.squeeze(n.vec(x)[None]),
    "xp.swapaxes": lambda n, x: n.xp.swapaxes(n.mat(x), 0, 1),
    "xp.tile": lambda n, x: n.xp.tile(n.vec(x), (2,)),
    "xp.tril": lambda n, x: n.xp.tril(n.mat(x)),
    "xp.triu": lambda n, x: n.xp.triu(n.mat(x)),
    "xp.unstack": lambda n, x: n.xp.unstack(n.vec(x)),
    "xp.std c": lambda n, x: n.xp.std(n.vec(x), correction=1),
    "xp.sum axis": lambda n, x: n.xp.sum(n.vec(x), axis=0),
    "xp.sum dtype": lambda n, x: n.xp.sum(n.vec(x), dtype=np.float32),
    "xp.prod dtype": lambda n, x: n.xp.prod(n.vec(x), dtype=np.int32),
    "xp.max keep": lambda n, x: n.xp.max(n.vec(x), keepdims=True),
    "xp.arange": lambda n, x: n.xp.arange(n.lit(x)),
    "xp.linspace": lambda n, x: n.xp.linspace(x, 3, 4),
    "xp.linspace2": lambda n, x: n.xp.linspace(0, x, 4),
    "xp.full": lambda n, x: n.xp.full((2,), n.sc(x)),
    "xp.full_like 2": lambda n, x: n.xp.full_like(n.vec(x), 2),
    "xp.full_like 2.5": lambda n, x: n.xp.full_like(n.vec(x), 2.5),
    "xp.take": lambda n, x: n.xp.take(n.vec(x), np.int32([0, 1])),
    "xp.take_along": lambda n, x: n.xp.take_along_axis(n.vec(x), np.int32([0, 1])),
    "xp.take idx": lambda n, x: n.xp.take(np.float32([1, 2, 3]), x),
    "getitem": lambda n, x: n.vec(x)[0],
    "getitem slice": lambda n, x: n.vec(x)[1:],
    "getitem arr": lambda n, x: n.vec(x)[np.int32([0, 1])],
    "getitem None": lambda n, x: n.vec(x)[None],
    "getitem ...": lambda n, x: n.vec(x)[...],
    "getitem neg": lambda n, x: n.vec(x)[::-1],
    "getitem by": lambda n, x: n.xp.asarray(np.float32([1, 2, 3]))[x],
    "xp.clip0": lambda n, x: n.xp.clip(x, 0, 1),
    "xp.clipf": lambda n, x: n.xp.clip(x, 0.5, 1.5),
    "xp.clipNone": lambda n, x: n.xp.clip(x),
    "xp.clip min": lambda n, x: n.xp.clip(x, min=0),
    "xp.round 1": lambda n, x: n.xp.round(x, 1),
    "xp.cumsum dtype": lambda n, x: n.xp.cumulative_sum(n.vec(x), dtype=np.float32),
    "xp.cumsum incl": lambda n, x: n.xp.cumulative_sum(n.vec(x), include_initial=True),
    "xp.diff n": lambda n, x: n.xp.diff(n.vec(x), n=2),
    "xp.asarray f": lambda n, x: n.xp.asarray(x, dtype=np.float32),
    "xp.asarray [x]": lambda n, x: n.xp.asarray([x, x]),
    "xp.asarray [x,1]": lambda n, x: n.xp.asarray([x, 1.5]),
    "xp.vecdot of itself": lambda n, x: n.xp.vecdot(n.vec(x), n.vec(x)),
    "lax.broadcast": lambda n, x: n.lax.broadcast(x, (2,)),
    "lax.broadcast_in_dim": lambda n, x: n.lax.broadcast_in_dim(n.vec(x), (2, 3), (1,)),
    "lax.collapse": lambda n, x: n.lax.collapse(n.mat(x), 0),
    "lax.expand_dims": lambda n, x: n.lax.expand_dims(x, (0,)),
    "lax.full": lambda n, x: n.lax.full((2,), n.sc(x)),
    "lax.full f": lambda n, x: n.lax.full((2,), n.sc(x), np.float32),
    "lax.full_like 2": lambda n, x: n.lax.full_like(n.vec(x), 2),
    "lax.index_in_dim": lambda n, x: n.lax.index_in_dim(n.vec(x), 0),
    "lax.integer_pow": lambda n, x: n.lax.integer_pow(x, 3),
    "lax.integer_pow0": lambda n, x: n.lax.integer_pow(x, 0),
    "lax.integer_pow1": lambda n, x: n.lax.integer_pow(x, 1),
    "lax.integer_pow-1": lambda n, x: n.lax.integer_pow(x, -1),
    "lax.reshape": lambda n, x: n.lax.reshape(n.vec(x), (3, 1)),
    "lax.reshape same": lambda n, x: n.lax.reshape(n.vec(x), (3,)),
    "lax.rev": lambda n, x: n.lax.rev(n.vec(x), (0,)),
    "lax.slice": lambda n, x: n.lax.slice(n.vec(x), (0,), (2,)),
    "lax.slice_in_dim": lambda n, x: n.lax.slice_in_dim(n.vec(x), 0, 2),
    "lax.sort": lambda n, x: n.lax.sort(n.vec(x)),
    "lax.sort2": lambda n, x: n.lax.sort((n.vec(x), n.xp.asarray(np.float32([1, 2, 3])))),
    "lax.sort_key_val": lambda n, x: n.lax.sort_key_val(n.vec(x), n.vec(1.5)),
    "lax.split": lambda n, x: n.lax.split(n.vec(x), (1, 2)),
    "lax.squeeze": lambda n, x: n.lax.squeeze(n.vec(x)[None], (0,)),
    "lax.top_k": lambda n, x: n.lax.top_k(n.vec(x), 2),
    "lax.transpose": lambda n, x: n.lax.transpose(n.mat(x), (1, 0)),
    "lax.convert": lambda n, x: n.lax.convert_element_type(x, np.float32),
    "lax.convert float": lambda n, x: n.lax.convert_element_type(x, float),
    "lax.convert int": lambda n, x: n.lax.convert_element_type(x, int),
    "lax.convert complex": lambda n, x: n.lax.convert_element_type(x, complex),
    "lax.convert bool": lambda n, x: n.lax.convert_element_type(x, bool),
    "xp.astype float": lambda n, x: n.xp.astype(n.vec(x), float),
    "xp.asarray float": lambda n, x: n.xp.asarray(x, dtype=float),
    "xp.zeros_like float": lambda n, x: n.xp.zeros_like(x, dtype=float),
    "xp.full float": lambda n, x: n.xp.full((2,), n.sc(x), dtype=float),
    "xp.sum float": lambda n, x: n.xp.sum(n.vec(x), dtype=float),
    "lax.bitcast": lambda n, x: n.lax.bitcast_convert_type(x, np.int32),
    "lax.argmax": lambda n, x: n.lax.argmax(n.vec(x), 0, np.int32),
    "lax.argmin": lambda n, x: n.lax.argmin(n.vec(x), 0, np.int32),
    "lax.cummax": lambda n, x: n.lax.cummax(n.vec(x)),
    "lax.cummin": lambda n, x: n.lax.cummin(n.vec(x)),
    "lax.cumprod": lambda n, x: n.lax.cumprod(n.vec(x)),
    "lax.cumsum": lambda n, x: n.lax.cumsum(n.vec(x)),
    "lax.reduce_sum": lambda n, x: n.lax.reduce_sum(n.vec(x), (0,)),
    "lax.reduce_prod": lambda n, x: n.lax.reduce_prod(n.vec(x), (0,)),
    "lax.reduce_max": lambda n, x: n.lax.reduce_max(n.vec(x), (0,)),
    "lax.reduce_min": lambda n, x: n.lax.reduce_min(n.vec(x), (0,)),
    "lax.reduce_and": lambda n, x: n.lax.reduce_and(n.vec(x), (0,)),
    "lax.reduce_or": lambda n, x: n.lax.reduce_or(n.vec(x), (0,)),
    "lax.reduce_xor": lambda n, x: n.lax.reduce_xor(n.vec(x), (0,)),
    "lax.reduce_precision": lambda n, x: n.lax.reduce_precision(x, 5, 3),
    "lax.reduce": lambda n, x: n.lax.reduce(n.vec(x), 0, n.lax.add, (0,)),
    "lax.reduce f": lambda n, x: n.lax.reduce(n.vec(x), 0.0, n.lax.add, (0,)),
    "lax.reduce own": lambda n, x: n.lax.reduce(n.vec(x), n.sc(x), n.lax.max, (0,)),
    "lax.reduce_window": lambda n, x: n.lax.reduce_window(
        n.vec(x), 0, n.lax.add, (2,), (1,), "VALID"
    ),
    "lax.reduce_window f": lambda n, x: n.lax.reduce_window(
        n.vec(x), 0.0, n.lax.add, (2,), (1,), "VALID"
    ),
    "lax.reduce_window own": lambda n, x: n.lax.reduce_window(
        n.vec(x), n.sc(x), n.lax.mul, (2,), (1,), "VALID"
    ),
    "lax.dynamic_slice": lambda n, x: n.lax.dynamic_slice(n.vec(x), (0,), (2,)),
    "lax.dynamic_slice idx": lambda n, x: n.lax.dynamic_slice(
        n.xp.asarray(np.float32([1, 2, 3])), (n.sc(x),), (2,)
    ),
    "lax.dynamic_slice_in_dim": lambda n, x: n.lax.dynamic_slice_in_dim(n.vec(x), 0, 2),
    "lax.dynamic_index_in_dim": lambda n, x: n.lax.dynamic_index_in_dim(n.vec(x), 1),
    "lax.dynamic_index_in_dim F": lambda n, x: n.lax.dynamic_index_in_dim(
        n.vec(x), 1, keepdims=False
    ),
    "lax.pad": lambda n, x: n.lax.pad(n.vec(x), n.sc(x), ((1, 1, 0),)),
    "lax.pad 0": lambda n, x: n.lax.pad(n.vec(x), 0, ((1, 1, 0),)),
    "lax.pad 0.": lambda n, x: n.lax.pad(n.vec(x), 0.0, ((1, 1, 0),)),
    "lax.fft": lambda n, x: n.lax.fft(n.vec(x), "FFT", (3,)),
    "lax.rfft": lambda n, x: n.lax.fft(n.vec(x), "RFFT", (3,)),
    "lax.associative_scan": lambda n, x: n.lax.associative_scan(n.lax.add, n.vec(x)),
    "lax.associative_scan xp": lambda n, x: n.lax.associative_scan(lambda a, b: a + b, n.vec(x)),
    "lax.map": lambda n, x: n.lax.map(lambda y: y * 2, n.vec(x)),
    "lax.map1": lambda n, x: n.lax.map(lambda y: y, n.vec(x)),
    "lax.map lit": lambda n, x: n.lax.map(lambda y: 1.0, n.vec(x)),
    "lax.scan xs": lambda n, x: n.lax.scan(lambda c, y: (c + 1, y), 0, n.vec(x)),
    "lax.scan c": lambda n, x: n.lax.scan(lambda c, _: (c * 2, c), x, None, length=2),
    "lax.scan cf": lambda n, x: n.lax.scan(lambda c, _: (c * 0.5, c), x, None, length=2),
    "lax.scan c strong": lambda n, x: n.lax.scan(
        lambda c, _: (c * n.xp.asarray(np.float32(1)), c), x, None, length=2
    ),
    "lax.scan closed": lambda n, x: n.lax.scan(lambda c, _: (c, x * c), 1.0, None, length=2),
    "lax.scan c0": lambda n, x: n.lax.scan(lambda c, y: (c + y, c), 0.0, n.vec(x)),
    "lax.scan len0": lambda n, x: n.lax.scan(lambda c, y: (c, c + y), x, n.vec(x)[:0]),
    "lax.fori": lambda n, x: n.lax.fori_loop(0, 3, lambda i, c: c * 2, x),
    "lax.fori f": lambda n, x: n.lax.fori_loop(0, 3, lambda i, c: c * 0.5, x),
    "lax.fori i": lambda n, x: n.lax.fori_loop(0, 3, lambda i, c: c + i, x),
    "lax.fori ix": lambda n, x: n.lax.fori_loop(0, 3, lambda i, c: c + i * x, x),
    "lax.fori hi": lambda n, x: n.lax.fori_loop(0, x, lambda i, c: c + i, 0),
    "lax.fori hi2": lambda n, x: n.lax.fori_loop(0, x, lambda i, c: c + i * 0.5, 1.0),
    "lax.fori hi3": lambda n, x: n.lax.fori_loop(0, x, lambda i, c: i, x),
    "lax.while": lambda n, x: n.lax.while_loop(
        lambda c: c[1] < 3, lambda c: (c[0] * 2, c[1] + 1), (x, 0)
    ),
    "lax.while f": lambda n, x: n.lax.while_loop(
        lambda c: c[1] < 3, lambda c: (c[0] + 0.5, c[1] + 1), (x, 0)
    ),
    "lax.while own": lambda n, x: n.lax.while_loop(lambda c: n.xp.all(c < 3), lambda c: c + 1, x),
    "lax.cond": lambda n, x: n.lax.cond(True, lambda y: y, lambda y: y * 2, x),
    "lax.cond lit": lambda n, x: n.lax.cond(True, lambda y: y, lambda y: 2, x),
    "lax.cond litf": lambda n, x: n.lax.cond(True, lambda y: y, lambda y: 2.0, x),
    "lax.cond pred": lambda n, x: n.lax.cond(x, lambda: 1, lambda: 2),
    "lax.cond t": lambda n, x: n.lax.cond(n.true, lambda y: y, lambda y: y * 2, x),
    "lax.cond tlit": lambda n, x: n.lax.cond(n.true, lambda y: y, lambda y: 2, x),
    "lax.cond tlitf": lambda n, x: n.lax.cond(n.true, lambda y: 2.0, lambda y: y, x),
    "lax.switch": lambda n, x: n.lax.switch(1, [lambda y: y, lambda y: y + 1], x),
    "lax.switch by": lambda n, x: n.lax.switch(x, [lambda: 1, lambda: 2]),
    "lax.switch t": lambda n, x: n.lax.switch(n.index, [lambda y: y, lambda y: y + 1], x),
    "lax.switch 1": lambda n, x: n.lax.switch(0, [lambda y: y], x),
    "jit id": lambda n, x: n.jit(lambda y: y)(x),
    "jit +1": lambda n, x: n.jit(lambda y: y + 1)(x),
    "jit lit": lambda n, x: n.jit(lambda y: (1.5, 2, True))(x),
    "jit sin": lambda n, x: n.jit(lambda y: n.xp.sin(y))(x),
    "jit closed": lambda n, x: n.jit(lambda: x * 1)(),
    "xp.meshgrid of one": lambda n, x: n.xp.meshgrid(n.vec(x)),
    "m.sum": lambda n, x: n.vec(x).sum(),
    "m.mean": lambda n, x: n.vec(x).mean(),
    "m.max": lambda n, x: n.vec(x).max(),
    "m.T": lambda n, x: n.vec(x).T,
    "m.mT": lambda n, x: n.mat(x).mT,
    "m.reshape": lambda n, x: n.vec(x).reshape(3, 1),
    "m.astype": lambda n, x: n.vec(x).astype(np.float16),
    "m.real": lambda n, x: n.vec(x).real,
    "m.imag": lambda n, x: n.vec(x).imag,
    "m.conj": lambda n, x: n.vec(x).conj(),
    "m.round": lambda n, x: n.vec(x).round(),
    "m.clip": lambda n, x: n.vec(x).clip(0, 1),
    "m.prod": lambda n, x: n.vec(x).prod(),
    "m.std": lambda n, x: n.vec(x).std(),
    "m.var": lambda n, x: n.vec(x).var(),
    "m.argmax": lambda n, x: n.vec(x).argmax(),
    "m.cumsum": lambda n, x: n.vec(x).cumsum(),
    "m.cumprod": lambda n, x: n.vec(x).cumprod(),
    "m.dot": lambda n, x: n.vec(x).dot(n.vec(x)),
    "m.ravel": lambda n, x: n.vec(x).ravel(),
    "m.flatten": lambda n, x: n.vec(x).flatten(),
    "m.squeeze": lambda n, x: n.vec(x).squeeze(),
    "m.transpose": lambda n, x: n.vec(x).transpose(),
    "m.copy": lambda n, x: n.vec(x).copy(),
    "m.repeat": lambda n, x: n.vec(x).repeat(2),
    "m.take": lambda n, x: n.vec(x).take(np.int32([0])),
    "m.sort": lambda n, x: n.vec(x).sort(),
    "m.argsort": lambda n, x: n.vec(x).argsort(),
    "m.swapaxes": lambda n, x: n.mat(x).swapaxes(0, 1),
    "m.any": lambda n, x: n.vec(x).any(),
    "iter": lambda n, x: list(n.vec(x)),
    "rnd.uniform min": lambda n, x: n.rnd.uniform(n.key, (2,), minval=x),
    "rnd.bernoulli": lambda n, x: n.rnd.bernoulli(n.key, x, (2,)),
    "rnd.randint": lambda n, x: n.rnd.randint(n.key, (2,), 0, x),
    "rnd.truncated_normal": lambda n, x: n.rnd.truncated_normal(n.key, -2, x, (2,)),
    "rnd.truncated_normal2": lambda n, x: n.rnd.truncated_normal(n.key, -2.0, x),
    "rnd.permutation": lambda n, x: n.rnd.permutation(n.key, n.vec(x)),
    "rnd.choice": lambda n, x: n.rnd.choice(n.key, n.vec(x), (2,)),
    "rnd.choice p": lambda n, x: n.rnd.choice(n.key, 3, (2,), p=n.vec(x)),
    "rnd.categorical": lambda n, x: n.rnd.categorical(n.key, n.vec(x)),
    "rnd.fold_in": lambda n, x: n.rnd.fold_in(n.key, n.sc(x)),
    "rnd.PRNGKey": lambda n, x: n.rnd.PRNGKey(n.sc(x)),
    "rnd.normal": lambda n, x: n.rnd.normal(n.key, (2,)),
    "rnd.exp": lambda n, x: n.rnd.exponential(n.key, (2,)),
    "rnd.normal f": lambda n, x: n.rnd.normal(n.key, (2,), float),
    "rnd.bits": lambda n, x: n.rnd.bits(n.key, (2,)),
    "rnd.rademacher": lambda n, x: n.rnd.rademacher(n.key, (2,)),
    "rnd.rademacher f": lambda n, x: n.rnd.rademacher(n.key, (2,), float),
    "rnd.permutation scalar": lambda n, x: n.rnd.permutation(n.key, 3),
    "rnd.shuffle 2": lambda n, x: n.rnd.permutation(n.key, n.mat(x), independent=True),
    "rnd.bits int": lambda n, x: n.rnd.randint(n.key, (2,), 0, 5, int),
    "xp.eye": lambda n, x: n.xp.eye(2, dtype=float),
    "xp.zeros int": lambda n, x: n.xp.zeros(2, dtype=int),
}
OF_TWO: dict[str, Call] = {
    **{f"xp.{f}": _named("xp", f) for f in _XP_TWO},
    **{f"lax.{f}": _named("lax", f) for f in _LAX_TWO},
    **{f"op.{f}": _operator(getattr(operator, f)) for f in _OPERATORS},
    **{f"lax.{f}": _scattering(f) for f in _SCATTERS},
    "op.divmod": lambda n, a, b: divmod(a, b),
    "op.matmul": lambda n, a, b: n.vec(a) @ n.vec(b),
    "xp.where": lambda n, a, b: n.xp.where(n.true, a, b),
    "xp.where c": lambda n, a, b: n.xp.where(a, b, 1),
    "xp.where c2": lambda n, a, b: n.xp.where(a, 1.5, b),
    "xp.clip2": lambda n, a, b: n.xp.clip(a, b),
    "xp.clip3": lambda n, a, b: n.xp.clip(a, b, 1),
    "xp.clip4": lambda n, a, b: n.xp.clip(a, max=b),
    "xp.clip5": lambda n, a, b: n.xp.clip(a, 0, b),
    "xp.concat": lambda n, a, b: n.xp.concat([n.vec(a), n.vec(b)]),
    "xp.stack": lambda n, a, b: n.xp.stack([n.vec(a), n.vec(b)]),
    "xp.meshgrid": lambda n, a, b: n.xp.meshgrid(n.vec(a), n.vec(b)),
    "xp.broadcast_arrays": lambda n, a, b: n.xp.broadcast_arrays(a, b),
    "xp.asarray2": lambda n, a, b: n.xp.asarray([a, b]),
    "xp.matmul": lambda n, a, b: n.xp.matmul(n.vec(a), n.vec(b)),
    "xp.tensordot": lambda n, a, b: n.xp.tensordot(n.vec(a), n.vec(b), axes=1),
    "xp.vecdot": lambda n, a, b: n.xp.vecdot(n.vec(a), n.vec(b)),
    "xp.searchsorted": lambda n, a, b: n.xp.searchsorted(n.vec(a), b),
    "xp.diff pre": lambda n, a, b: n.xp.diff(n.vec(a), prepend=n.vec(b)),
    "xp.full_like": lambda n, a, b: n.xp.full_like(n.vec(a), n.sc(b)),
    "xp.linspace ab": lambda n, a, b: n.xp.linspace(a, b, 3),
    "xp.take_along fill": lambda n, a, b: n.xp.take(n.vec(a), b),
    "at.set": lambda n, a, b: n.vec(a).at[0].set(b),
    "at.add": lambda n, a, b: n.vec(a).at[0].add(b),
    "at.mul": lambda n, a, b: n.vec(a).at[0].multiply(b),
    "at.max": lambda n, a, b: n.vec(a).at[:2].max(b),
    "at.power": lambda n, a, b: n.vec(a).at[0].power(b),
    "at.divide": lambda n, a, b: n.vec(a).at[0].divide(b),
    "at.min": lambda n, a, b: n.vec(a).at[0].min(b),
    "at.sub": lambda n, a, b: n.vec(a).at[0].subtract(b),
    "at.setm": lambda n, a, b: n.vec(a).at[np.array([True, False, True])].set(b),
    "at.get": lambda n, a, b: n.vec(a).at[0].get(),
    "at.setidx": lambda n, a, b: n.vec(a).at[n.sc(b)].set(1),
    "xp.repeat2": lambda n, a, b: n.xp.repeat(n.vec(a), b, total_repeat_length=5),
    "lax.clamp": lambda n, a, b: n.lax.clamp(a, b, a),
    "lax.clamp2": lambda n, a, b: n.lax.clamp(0, a, b),
    "lax.clamp3": lambda n, a, b: n.lax.clamp(0.0, a, b),
    "lax.select": lambda n, a, b: n.lax.select(n.true, a, b),
    "lax.select v": lambda n, a, b: n.lax.select(
        n.xp.asarray(np.array([True, False, True])), n.vec(a), n.vec(b)
    ),
    "lax.select_n": lambda n, a, b: n.lax.select_n(n.true, a, b),
    "lax.select_n i": lambda n, a, b: n.lax.select_n(a, b, b, b),
    "lax.concatenate": lambda n, a, b: n.lax.concatenate([n.vec(a), n.vec(b)], 0),
    "lax.dot": lambda n, a, b: n.lax.dot(n.vec(a), n.vec(b)),
    "lax.dot pref": lambda n, a, b: n.lax.dot(
        n.vec(a), n.vec(b), preferred_element_type=np.float32
    ),
    "lax.dot pref float": lambda n, a, b: n.lax.dot(
        n.vec(a), n.vec(b), preferred_element_type=float
    ),
    "lax.dot_general": lambda n, a, b: n.lax.dot_general(
        n.vec(a), n.vec(b), (((0,), (0,)), ((), ()))
    ),
    "lax.dus": lambda n, a, b: n.lax.dynamic_update_slice(n.vec(a), n.vec(b)[:1], (0,)),
    "lax.dus idx": lambda n, a, b: n.lax.dynamic_update_slice(n.vec(a), n.vec(a)[:1], (b,)),
    "lax.dusid": lambda n, a, b: n.lax.dynamic_update_slice_in_dim(n.vec(a), n.vec(b)[:1], 0, 0),
    "lax.duiid": lambda n, a, b: n.lax.dynamic_update_index_in_dim(n.vec(a), n.sc(b), 0, 0),
    "lax.dus 0d": lambda n, a, b: n.lax.dynamic_update_slice(n.sc(a), n.sc(b), ()),
    "lax.pad2": lambda n, a, b: n.lax.pad(n.vec(a), n.sc(b), ((1, 1, 0),)),
    "lax.full_like": lambda n, a, b: n.lax.full_like(n.vec(a), n.sc(b)),
    "lax.scan carry+x": lambda n, a, b: n.lax.scan(lambda c, y: (c + y, c * y), a, n.vec(b)),
    "lax.scan out": lambda n, a, b: n.lax.scan(lambda c, y: (c, b * c), a, None, length=2),
    "lax.while2": lambda n, a, b: n.lax.while_loop(
        lambda c: c[1] < 3, lambda c: (c[0] + b, c[1] + 1), (a, 0)
    ),
    "lax.fori2": lambda n, a, b: n.lax.fori_loop(0, 2, lambda i, c: c * b, a),
    "lax.fori3": lambda n, a, b: n.lax.fori_loop(a, b, lambda i, c: i, a),
    "lax.fori swap": lambda n, a, b: n.lax.fori_loop(0, 2, lambda i, c: (c[1], c[0]), (a, b)),
    "lax.cond2": lambda n, a, b: n.lax.cond(n.true, lambda: a, lambda: b),
    "lax.switch2": lambda n, a, b: n.lax.switch(n.index, [lambda: a, lambda: b, lambda: a]),
    "lax.cond lit2": lambda n, a, b: n.lax.cond(True, lambda: a, lambda: b),
    "lax.reduce2": lambda n, a, b: n.lax.reduce(n.vec(a), n.sc(b), n.lax.add, (0,)),
    "lax.reduce_window2": lambda n, a, b: n.lax.reduce_window(
        n.vec(a), n.sc(b), n.lax.add, (2,), (1,), "VALID"
    ),
    "lax.reduce 2ops": lambda n, a, b: n.lax.reduce(
        (n.vec(a), n.vec(b)), (n.sc(a), n.sc(b)), lambda x, y: (x[0] + y[0], x[1] * y[1]), (0,)
    ),
    "lax.sort_kv": lambda n, a, b: n.lax.sort_key_val(n.vec(a), n.vec(b)),
    "lax.barrier": lambda n, a, b: n.lax.optimization_barrier((a, b)),
    "lax.conv": lambda n, a, b: n.lax.conv(
        n.xp.reshape(n.vec(a), (1, 1, 3)), n.xp.reshape(n.vec(b), (1, 1, 3)), (1,), "SAME"
    ),
    "lax.gather": lambda n, a, b: n.lax.gather(
        n.vec(a), n.xp.reshape(n.xp.asarray(np.int32([0, 1])), (2, 1)),
        n.lax.GatherDimensionNumbers((), (0,), (0,)), (1,), mode="fill",
    ),
    "lax.gather idx": lambda n, a, b: n.lax.gather(
        n.vec(a), n.xp.reshape(n.vec(b), (3, 1)), n.lax.GatherDimensionNumbers((), (0,), (0,)),
        (1,), mode="clip",
    ),
    "lax.associative2": lambda n, a, b: n.lax.associative_scan(
        lambda x, y: (x[0] + y[0], x[1] * y[1]), (n.vec(a), n.vec(b))
    ),
    "jit2": lambda n, a, b: n.jit(lambda x, y: (x * y, x, y))(a, b),
    "jit2c": lambda n, a, b: n.jit(lambda x: x + b)(a),
    "rnd.uniform": lambda n, a, b: n.rnd.uniform(n.key, (2,), minval=a, maxval=b),
    "rnd.randint2": lambda n, a, b: n.rnd.randint(n.key, (3,), a, b),
    "rnd.truncated2": lambda n, a, b: n.rnd.truncated_normal(n.key, a, b),
    "divmod": lambda n, a, b: divmod(a, b),
}  # fmt: skip
