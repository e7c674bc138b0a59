"""Samples of the gamma distribution, and of those derived from it: `beta`, `dirichlet`, `t`, …"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from plugrt.errors import ShapeError
from plugrt.lax.control_flow.loops import emit_while
from plugrt.random.continuous import (
    Shape,
    broadcast_parameter,
    float_dtype,
    read_shape,
    sample_normal,
    sample_uniform,
)
from plugrt.random.generators import lax, split_in, split_key, xp
from plugrt.random.keys import read_key
from plugrt.tracing.argument_checks import normalize_shape
from plugrt.tracing.emit import constant, convert, full, reshape
from plugrt.tracing.operation import operation
from plugrt.tracing.tracer import Tracer
from plugrt.typing import DTypeLike


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def gamma(
    key: Tracer, a: Tracer, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Tracer:
    """Returns numbers of the gamma distribution with the shape parameter ``a`` and the scale 1.

    ``shape`` None is ``a.shape``. A real floating ``dtype``, the default one for None. Raises
    `DtypeError` for others, `ShapeError` where ``a`` does not broadcast or for a wrong key. As
    ``jax.random.gamma``.
    """
    own = read_key("gamma", key)
    return _sample("gamma", own, a, shape, float_dtype("gamma", dtype), in_logs=False)


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def loggamma(
    key: Tracer, a: Tracer, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Tracer:
    """Returns logarithms of the numbers of `gamma`, exact where these are near 0.

    Arguments as for `gamma`; raises as `gamma` does. As ``jax.random.loggamma``.
    """
    own = read_key("loggamma", key)
    return _sample("loggamma", own, a, shape, float_dtype("loggamma", dtype), in_logs=True)


def _sample(
    function: str,
    key: Tracer,
    a: Tracer,
    shape: Shape | None,
    dtype: np.dtype[Any],
    *,
    in_logs: bool,
) -> Tracer:
    wanted = read_shape(function, shape, a)
    count = math.prod(wanted)
    alphas = reshape(broadcast_parameter(function, "a", a, wanted, dtype), (count,))
    keys = split_key(key, (count,))
    if keys.dtype.itemsize == 8:  # Threefry keys give the same bits alone and in an array
        drawn = _draw(keys, alphas, in_logs)
    else:
        drawn = lax.map(lambda each: _draw(each[0], each[1], in_logs), (keys, alphas))
    return reshape(drawn, wanted)


def _draw(keys: Tracer, alpha: Any, in_logs: bool) -> Any:
    """Returns a number for each key, by the method of Marsaglia and Tsang (2000).

    A parameter below 1 is raised by 1, and the number multiplied by a power of a uniform one.
    """
    dtype, shape = alpha.dtype, alpha.shape
    is_large = alpha >= 1
    raised = xp.where(is_large, alpha, alpha + 1)
    d = raised - _number(1 / 3, dtype)
    c = _number(1 / 3, dtype) / xp.sqrt(d)

    def is_rejected(_: Tracer, x: Any, v: Any, u: Any) -> object:
        above = u >= 1 - _number(0.0331, dtype) * (x * x)
        return above & (xp.log(u) >= x * _number(0.5, dtype) + d * (1 - v + xp.log(v)))

    def draw_again(key: Tracer, *_: Tracer) -> tuple[Any, ...]:
        key, of_x, of_u = split_in(key, 3)

        def draw_x(key: Tracer, *_: Tracer) -> tuple[Any, ...]:
            key, one = split_in(key, 2)
            x: Any = sample_normal(one, (), dtype)
            return key, x, 1 + x * c

        start = (of_x, full(shape, 0, dtype), full(shape, -1, dtype))
        _, x, v = _repeat(lambda _, x, v: v <= 0, draw_x, start)
        return key, x * x, v * v * v, sample_uniform(of_u, (), dtype)

    key, of_boost = split_in(keys, 2)
    start = (key, full(shape, 0, dtype), full(shape, 1, dtype), full(shape, 2, dtype))
    v = _repeat(is_rejected, draw_again, start)[2]
    uniform: Any = sample_uniform(of_boost, (), dtype)
    if in_logs:
        logs = xp.log1p(-uniform)
        boost = xp.where(is_large | (logs == 0), _number(0, dtype), logs * (1 / alpha))
        return xp.log(d) + xp.log(v) + boost
    boost = xp.where(is_large, _number(1, dtype), (1 - uniform) ** (1 / alpha))
    return d * v * boost


def _number(value: float, dtype: np.dtype[Any]) -> Any:
    return constant(value, dtype)


def _repeat(
    holds: Callable[..., Any], step: Callable[..., tuple[Any, ...]], state: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Returns the state after steps, which change an element while ``holds`` is true for it."""

    def advance(old: tuple[Any, ...]) -> tuple[Any, ...]:
        going = holds(*old)
        return tuple(xp.where(going, x, y) for x, y in zip(step(*old), old, strict=True))

    going = lambda old: xp.any(holds(*old))  # noqa: E731
    ended: tuple[Any, ...] = emit_while("while_loop", going, advance, state)
    return ended


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def beta(
    key: Tracer, a: Tracer, b: Tracer, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Tracer:
    """Returns numbers of the beta distribution with the parameters ``a`` and ``b``.

    ``shape`` None is the shape of both broadcast. A real floating ``dtype``, the default one for
    None. Raises `DtypeError` for others, `ShapeError` where the parameters do not broadcast or for
    a wrong key. As ``jax.random.beta``.
    """
    result_dtype = float_dtype("beta", dtype)
    wanted = read_shape("beta", shape, a, b)
    pair = zip(split_in(read_key("beta", key), 2), (a, b), strict=True)
    first, second = (loggamma(one, x, wanted, result_dtype) for one, x in pair)
    most = xp.maximum(first, second)
    scaled = xp.exp(first - most)
    share: Tracer = scaled / (scaled + xp.exp(second - most))
    return share


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def dirichlet(
    key: Tracer, alpha: Tracer, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Tracer:
    """Returns vectors of the Dirichlet distribution, with the parameters along the last axis.

    ``shape`` is the result's without that axis, None for ``alpha.shape[:-1]``. A real floating
    ``dtype``, the default one for None. Raises `DtypeError` for others, `ShapeError` for an
    ``alpha`` without dimensions or that does not broadcast, and for a wrong key. As
    ``jax.random.dirichlet``.
    """
    own, result_dtype = read_key("dirichlet", key), float_dtype("dirichlet", dtype)
    if not alpha.ndim:
        raise ShapeError(
            "alpha of random.dirichlet must have one dimension or more, found a 0-d array"
        )
    batch = alpha.shape[:-1]
    wanted = batch if shape is None else normalize_shape("random.dirichlet", shape)
    logs = loggamma(own, alpha, (*wanted, alpha.shape[-1]), result_dtype)
    scaled = xp.exp(logs - xp.max(logs, axis=-1, keepdims=True))
    shares: Tracer = scaled / xp.sum(scaled, axis=-1, keepdims=True)
    return shares


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def t(
    key: Tracer, df: Tracer, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Tracer:
    """Returns numbers of Student's t-distribution with ``df`` degrees of freedom.

    ``shape`` None is ``df.shape``. A real floating ``dtype``, the default one for None. Raises
    `DtypeError` for others, `ShapeError` where ``df`` does not broadcast or for a wrong key. As
    ``jax.random.t``.
    """
    result_dtype = float_dtype("t", dtype)
    wanted = read_shape("t", shape, df)
    of_normal, of_gamma = split_in(read_key("t", key), 2)
    half: Any = convert(df, result_dtype) / 2
    normal: Any = sample_normal(of_normal, wanted, result_dtype)
    drawn: Tracer = normal * xp.sqrt(half / gamma(of_gamma, half, wanted, result_dtype))
    return drawn


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def chisquare(
    key: Tracer, df: Tracer, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Tracer:
    """Returns numbers of the chi-squared distribution with ``df`` degrees of freedom.

    ``shape`` None is ``df.shape``. A real floating ``dtype``, the default one for None. Raises
    `DtypeError` for others, `ShapeError` where ``df`` does not broadcast or for a wrong key. As
    ``jax.random.chisquare``.
    """
    result_dtype = float_dtype("chisquare", dtype)
    wanted = read_shape("chisquare", shape, df)
    half: Any = convert(df, result_dtype) / 2
    own = read_key("chisquare", key)
    drawn: Tracer = xp.exp(loggamma(own, half, wanted, result_dtype)) * 2
    return drawn


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def f(
    key: Tracer,
    dfnum: Tracer,
    dfden: Tracer,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Tracer:
    """Returns numbers of the F-distribution with ``dfnum`` and ``dfden`` degrees of freedom.

    ``shape`` None is the shape of both broadcast. A real floating ``dtype``, the default one for
    None. Raises `DtypeError` for others, `ShapeError` where they do not broadcast or for a wrong
    key. As ``jax.random.f``.
    """
    result_dtype = float_dtype("f", dtype)
    wanted = read_shape("f", shape, dfnum, dfden)
    keys = reversed(split_in(read_key("f", key), 2))
    freedoms = [convert(x, result_dtype) for x in (dfnum, dfden)]
    above, below = (
        chisquare(one, df, wanted, result_dtype) / df
        for one, df in zip(keys, freedoms, strict=True)
    )
    drawn: Tracer = above / below
    return drawn
