"""Samples of discrete distributions: `randint`, `bernoulli`, `categorical`, `rademacher`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plugrt.array_api.dtypes import as_dtype
from plugrt.errors import ArgumentError, DtypeError, ShapeError
from plugrt.random.continuous import (
    Shape,
    broadcast_parameter,
    finfo,
    float_dtype,
    gumbel,
    uniform,
)
from plugrt.random.generators import lax, random_bits, read_row, split_key
from plugrt.random.keys import read_key
from plugrt.tracing.argument_checks import normalize_axis, normalize_shape
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import (
    broadcast_to,
    constant,
    convert,
    full,
    reshape,
    transpose,
)
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import default_float, default_int, dtype_kind
from plugrt.tracing.tracer import Tracer
from plugrt.typing import DTypeLike


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def randint(
    key: Tracer, shape: Shape, minval: Tracer, maxval: Tracer, dtype: DTypeLike | None = None
) -> Tracer:
    """Returns integers from ``minval`` up to, not including, ``maxval``.

    The limits are integers or arrays that broadcast to ``shape``; if ``maxval`` is not above
    ``minval``, the result is ``minval``. Twice the bits of a number are drawn, so that the bias of
    the remainder is small. An integer ``dtype``, the default one for None. Raises `DtypeError` for
    other dtypes and limits, `ShapeError` for limits that do not broadcast or a wrong key. As
    ``jax.random.randint``.

    >>> random.randint(random.PRNGKey(0), (4,), 0, 10).dtype.name
    'int32'
    """
    key = read_key("randint", key)
    result_dtype = default_int() if dtype is None else as_dtype(dtype)
    if dtype_kind(result_dtype) not in "iu" or result_dtype.kind == "V":
        raise DtypeError(f"random.randint makes integers; dtype {result_dtype.name} was requested")
    wanted = normalize_shape("random.randint", shape)
    sampled = result_dtype
    if result_dtype.itemsize < 4:
        # Drawn in 32 bits, to reduce bias.
        sampled = np.dtype(np.int32)
        info = np.iinfo(result_dtype)
        minval = _clamp_to(
            _require_integer("minval", minval), int(info.min), int(info.max), sampled
        )
        maxval = _clamp_to(
            _require_integer("maxval", maxval), int(info.min), int(info.max) + 1, sampled
        )
    return convert(_randint(key, wanted, minval, maxval, sampled), result_dtype)


def _randint(key: Tracer, shape: Shape, low: Tracer, high: Tracer, dtype: np.dtype[Any]) -> Tracer:
    low, high = _require_integer("minval", low), _require_integer("maxval", high)
    top, info = np.iinfo(dtype), np.iinfo(high.dtype)
    beyond = lax.gt(high, constant(min(int(top.max), int(info.max)), high.dtype))
    low = broadcast_parameter(
        "randint", "minval", _clamp_to(low, int(top.min), int(top.max), dtype), shape, dtype
    )
    high = broadcast_parameter(
        "randint", "maxval", _clamp_to(high, int(top.min), int(top.max), dtype), shape, dtype
    )
    words = np.dtype(f"uint{8 * dtype.itemsize}")
    keys = split_key(key, (2,))
    upper, lower = (random_bits(read_row(keys, i), 8 * dtype.itemsize, shape) for i in range(2))
    span = convert(lax.sub(high, low), words)
    one = full(shape, 1, words)
    span = lax.select(lax.le(high, low), one, span)
    # With maxval one above the dtype's range the span may wrap to 0, and remainders keep all bits.
    whole = lax.bitwise_and(broadcast_to(beyond, shape), lax.gt(high, low))
    span = lax.select(whole, lax.add(span, one), span)
    # (upper * 2**bits + lower) % span, in words of these bits.
    factor = lax.rem(full(shape, 1 << (4 * dtype.itemsize), words), span)
    factor = lax.rem(lax.mul(factor, factor), span)
    offset = lax.add(lax.mul(lax.rem(upper, span), factor), lax.rem(lower, span))
    result: Tracer = lax.add(low, convert(lax.rem(offset, span), dtype))
    return result


def _require_integer(name: str, x: Tracer) -> Tracer:
    if dtype_kind(x.dtype) not in "iu":
        raise DtypeError(
            f"argument {name!r} of random.randint must be an integer; found {x.dtype.name}"
        )
    return x


def _clamp_to(x: Tracer, low: int, high: int, dtype: np.dtype[np.generic]) -> Tracer:
    """Returns integers clipped to [low, high], then in a dtype."""
    info = np.iinfo(x.dtype)
    least, most = max(low, int(info.min)), min(high, int(info.max))
    clipped = lax.clamp(constant(least, x.dtype), x, constant(most, x.dtype))
    return convert(clipped, dtype)


@operation(static=("shape", "mode"), weak_by="none", shards=True, keys="body")
def bernoulli(
    key: Tracer, p: Tracer | float = 0.5, shape: Shape | None = None, mode: str = "low"
) -> Tracer:
    """Returns booleans that are true with probability ``p``, a float or an array of floats.

    ``shape`` None means the shape of ``p``. ``mode`` "high" draws twice the bits, for small
    probabilities. Raises `DtypeError` for a ``p`` that is no float, `ShapeError` where it does not
    broadcast, `ArgumentError` for another mode. As ``jax.random.bernoulli``.

    >>> random.bernoulli(random.PRNGKey(0), 0.3, (3,)).dtype.name
    'bool'
    """
    key = read_key("bernoulli", key)
    if mode not in ("low", "high"):
        raise ArgumentError(f"mode of random.bernoulli is 'low' or 'high'; got {mode!r}")
    p = as_tracer(p)
    if dtype_kind(p.dtype) != "f":
        raise DtypeError(f"argument 'p' of random.bernoulli is a float; found {p.dtype.name}")
    wanted = p.shape if shape is None else normalize_shape("random.bernoulli", shape)
    chance = broadcast_parameter("bernoulli", "p", p, wanted, p.dtype)
    if mode == "low":
        low: Tracer = lax.lt(uniform(key, wanted, p.dtype), chance)
        return low
    both = uniform(key, (2, *wanted), p.dtype)
    unit = 2.0 ** -finfo(p.dtype).nmant
    fine = lax.mul(read_row(both, 1), constant(unit, p.dtype))
    result: Tracer = lax.lt(fine, lax.sub(chance, read_row(both, 0)))
    return result


@operation(static=("axis", "shape", "replace", "mode"), weak_by="none", shards=True, keys="body")
def categorical(
    key: Tracer,
    logits: Tracer,
    axis: int = -1,
    shape: Shape | None = None,
    replace: bool = True,
    mode: str | None = None,
) -> Tracer:
    """Returns indices along ``axis``, drawn with the unnormalised log-probabilities ``logits``.

    ``shape`` ends with the shape of ``logits`` without ``axis`` (None: is it); leading dimensions
    are further draws, each index at most once if not ``replace``. The result has the default
    integer dtype. Raises `DtypeError` for logits that are no real floats, `ShapeError` for a shape
    that does not end so, `AxisError`, and `ArgumentError` for more draws without replacement than
    indices. As ``jax.random.categorical``.

    >>> random.categorical(random.PRNGKey(0), xp.zeros((2, 5)), axis=1).shape
    (2,)
    """
    key = read_key("categorical", key)
    dtype = float_dtype("categorical", logits.dtype)
    axis = normalize_axis("random.categorical", axis, logits.ndim)
    batch = (*logits.shape[:axis], *logits.shape[axis + 1 :])
    wanted = batch if shape is None else normalize_shape("random.categorical", shape)
    prefix = wanted[: len(wanted) - len(batch)]
    if wanted[len(prefix) :] != batch:
        raise ShapeError(
            f"the shape of random.categorical must end with {batch}, the shape of logits without "
            f"axis {axis}; got {wanted}"
        )
    if replace:
        full_shape = (*prefix, *logits.shape)
        noise = gumbel(key, full_shape, dtype, mode)
        noisy = lax.add(noise, broadcast_to(logits, full_shape))
        drawn: Tracer = lax.argmax(noisy, axis + len(prefix), default_int())
        return drawn
    count = math.prod(prefix)
    if count > logits.shape[axis]:
        raise ArgumentError(
            f"random.categorical cannot draw {count} of {logits.shape[axis]} without replacement"
        )
    noisy = lax.add(logits, gumbel(key, logits.shape, dtype, mode))
    last = [*(i for i in range(logits.ndim) if i != axis), axis]
    chosen = lax.top_k(transpose(noisy, last), count)[1]
    return reshape(transpose(chosen, [len(batch), *range(len(batch))]), wanted)


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def rademacher(key: Tracer, shape: Shape = (), dtype: DTypeLike | None = None) -> Tracer:
    """Returns -1 or 1 with equal probability.

    A numeric ``dtype``, the default integer for None. Raises `DtypeError` or `ShapeError` for a
    wrong key or shape. As ``jax.random.rademacher``.
    """
    key = read_key("rademacher", key)
    result_dtype = default_int() if dtype is None else as_dtype(dtype)
    wanted = normalize_shape("random.rademacher", shape)
    drawn = convert(bernoulli(key, constant(0.5, default_float()), wanted), result_dtype)
    result: Tracer = lax.sub(lax.mul(constant(2, result_dtype), drawn), constant(1, result_dtype))
    return result
