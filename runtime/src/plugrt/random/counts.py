"""Samples of counts: `poisson`, `binomial`, `multinomial`, `geometric`."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt.array_api.dtypes import as_dtype
from plugrt.errors import DtypeError, ShapeError
from plugrt.lax.control_flow.counted_loop import emit_loop, steps_per_round
from plugrt.lax.control_flow.loops import emit_while
from plugrt.random.continuous import (
    Shape,
    broadcast_parameter,
    finfo,
    float_dtype,
    read_shape,
    sample_uniform,
)
from plugrt.random.generators import lax, split_in, split_key, xp
from plugrt.random.keys import read_key
from plugrt.tracing.argument_checks import normalize_shape
from plugrt.tracing.emit import constant, convert, full
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import default_float, default_int, dtype_kind, inexact
from plugrt.tracing.tracer import Tracer
from plugrt.typing import DTypeLike

_FLOAT32: np.dtype[Any] = np.dtype(np.float32)
_MOST = int(np.iinfo(np.int32).max)
_TAILS = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
    0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
    0.00925546218271273, 0.00833056343336287,
)  # fmt: skip
"""The error of Stirling's formula for the logarithm of k!, for k from 0 to 9."""


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def poisson(
    key: Tracer, lam: Tracer, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Tracer:
    """Returns integers of the Poisson distribution with the rate ``lam``.

    ``shape`` None is ``lam.shape``. An integer ``dtype``, the default one for None. Raises
    `DtypeError` for others, `ShapeError` where ``lam`` does not broadcast or for a wrong key. As
    ``jax.random.poisson``, which refuses other keys than Threefry's.
    """
    own, result_dtype = read_key("poisson", key), _integer("poisson", dtype)
    wanted = read_shape("poisson", shape, lam)
    rate: Any = broadcast_parameter("poisson", "lam", lam, wanted, _FLOAT32)
    is_small = (rate != rate) | (rate < 10)
    most = min(int(np.iinfo(result_dtype).max), _MOST)
    few = _multiply_until(own, xp.where(is_small, rate, 0), most, result_dtype)
    many = _reject_until(own, xp.where(is_small, 1e5, rate), most)
    drawn = xp.where(is_small, few, convert(many, result_dtype))
    result: Tracer = xp.where(rate == 0, constant(0, result_dtype), drawn)
    return result


def _integer(function: str, dtype: DTypeLike | None) -> np.dtype[Any]:
    found = default_int() if dtype is None else as_dtype(dtype)
    if dtype_kind(found) not in "iu":
        raise DtypeError(f"random.{function} makes integers; dtype {found.name} was requested")
    return found


def _multiply_until(key: Tracer, rate: Any, most: int, dtype: np.dtype[Any]) -> Any:
    """Returns counts by Knuth's method: of uniform numbers with a product above exp(-rate)."""

    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        i, count, key, logs = state
        key, one = split_in(key, 2)
        count = xp.where(logs > -rate, count + 1, count)
        return i + 1, count, key, logs + xp.log(sample_uniform(one, rate.shape, _FLOAT32))

    start = (0, full(rate.shape, 0, dtype), key, full(rate.shape, 0, _FLOAT32))
    going = lambda state: xp.any(state[3] > -rate) & (state[0] < most)  # noqa: E731
    return convert(emit_while("while_loop", going, step, start)[1] - 1, dtype)


def _reject_until(key: Tracer, rate: Any, most: int) -> Any:
    """Returns counts by Hörmann's transformed rejection (1993), for a rate from 10 on."""
    log_rate = xp.log(rate)
    b = 0.931 + 2.53 * xp.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        i, count, done, key = state
        key, of_u, of_v = split_in(key, 3)
        u = sample_uniform(of_u, rate.shape, rate.dtype) - 0.5
        v = sample_uniform(of_v, rate.shape, rate.dtype)
        near = 0.5 - xp.abs(u)
        k = xp.floor((2 * a / near + b) * u + rate + 0.43)
        s = xp.log(v * inverse_alpha / (a / (near * near) + b))
        logs = -rate + k * log_rate - lax.lgamma(k + 1)
        out = (k < 0) | ((near < 0.013) & (v > near))
        accepted = ((near >= 0.07) & (v <= v_r)) | (~out & (s <= logs))
        return i + 1, xp.where(accepted, k, count), done | accepted, key

    return _until_all_done(step, rate, key, most)


def _until_all_done(step: Any, like: Any, key: Tracer, most: int) -> Any:
    start = (0, full(like.shape, -1, like.dtype), full(like.shape, False, np.dtype(bool)), key)
    going = lambda state: xp.any(~state[2]) & (state[0] < most)  # noqa: E731
    return emit_while("while_loop", going, step, start)[1]


@operation(static=("shape", "dtype"), weak_by="none", keys="body")
def binomial(
    key: Tracer, n: Tracer, p: Tracer, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Tracer:
    """Returns counts of successes among ``n`` trials that succeed with probability ``p``.

    ``shape`` None is the shape of both broadcast. The counts are floats, NaN for a negative ``n``
    or ``p``. A real floating ``dtype``, the default one for None. Raises `DtypeError` for others,
    `ShapeError` where they do not broadcast or for a wrong key. As ``jax.random.binomial``.
    """
    own, result_dtype = read_key("binomial", key), float_dtype("binomial", dtype)
    wanted = read_shape("binomial", shape, n, p)
    computed = inexact(p.dtype)
    trials: Any = broadcast_parameter("binomial", "n", n, wanted, computed)
    chance: Any = broadcast_parameter("binomial", "p", p, wanted, computed)
    is_low = chance < 0.5
    q = xp.where(is_low, chance, 1 - chance)
    bad_count = (trials != trials) | (trials < 0)
    is_infinite, is_nan, is_negative = xp.isinf(trials), q != q, q < 0
    q = xp.where(is_nan | is_negative, 0.01, q)
    is_small = bad_count | (trials * q <= 10.0)
    trials = xp.floor(trials)
    most = _MOST if finfo(result_dtype).max > _MOST else int(finfo(result_dtype).max)
    few = _add_until(own, xp.where(is_small, trials, 0), q, most)
    many = _reject_binomial(own, xp.where(is_small, 1e4, trials), xp.where(is_small, 0.5, q), most)
    drawn: Any = xp.where(is_small, convert(few, result_dtype), convert(many, result_dtype))
    invalid = is_negative | is_nan | bad_count
    drawn = xp.where(invalid, constant(np.nan, result_dtype), drawn)
    drawn = xp.where(is_infinite & ~invalid, constant(np.inf, result_dtype), drawn)
    kept = is_low | bad_count | is_nan | is_infinite
    result: Tracer = xp.where(kept, drawn, convert(trials, result_dtype) - drawn)
    return result


def _add_until(key: Tracer, trials: Any, chance: Any, most: int) -> Any:
    """Returns the counts of geometric numbers whose sum is at most the number of trials."""
    log_failure = xp.log1p(-chance)

    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        i, count, total, key = state
        one, key = split_in(key, 2)
        count = xp.where(total <= trials, count + 1, count)
        u = sample_uniform(one, chance.shape, chance.dtype)
        return i + 1, count, total + xp.ceil(xp.log(u) / log_failure), key

    zeros = full(chance.shape, 0, chance.dtype)
    going = lambda state: xp.any(state[2] <= trials) & (state[0] < most)  # noqa: E731
    return emit_while("while_loop", going, step, (0, zeros, zeros, key))[1] - 1


def _reject_binomial(key: Tracer, trials: Any, chance: Any, most: int) -> Any:
    """Returns counts by Hörmann's transformed rejection (1993), for a mean from 10 on."""
    deviation = xp.sqrt(trials * chance * (1 - chance))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * chance
    c = trials * chance + 0.5
    v_r = 0.92 - 4.2 / b
    r = chance / (1 - chance)
    alpha = (2.83 + 5.1 / b) * deviation
    m = xp.floor((trials + 1) * chance)

    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        i, count, done, key = state
        key, of_u, of_v = split_in(key, 3)
        u = sample_uniform(of_u, chance.shape, chance.dtype)
        v = sample_uniform(of_v, chance.shape, chance.dtype)
        u = u - 0.5
        near = 0.5 - xp.abs(u)
        quick = (near >= 0.07) & (v <= v_r)
        k = xp.floor((2 * a / near + b) * u + c)
        out = (k < 0) | (k > trials)
        v = xp.log(v * alpha / (a / (near * near) + b))
        bound = (
            (m + 0.5) * xp.log((m + 1) / (r * (trials - m + 1)))
            + (trials + 1) * xp.log((trials - m + 1) / (trials - k + 1))
            + (k + 0.5) * xp.log(r * (trials - k + 1) / (k + 1))
            + _stirling_tail(m)
            + _stirling_tail(trials - m)
            - _stirling_tail(k)
            - _stirling_tail(trials - k)
        )
        accepted = quick | (~out & (v <= bound))
        return i + 1, xp.where(accepted, k, count), done | accepted, key

    return _until_all_done(step, chance, key, most)


def _stirling_tail(k: Any) -> Any:
    table = constant(np.array(_TAILS, k.dtype))
    is_listed = k <= 9
    k = xp.clip(k, 0, 9)
    square = (k + 1) * (k + 1)
    near = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)
    return xp.where(is_listed, xp.take(table, convert(xp.floor(k), np.int32)), near)


@operation(static=("shape", "dtype", "unroll"), weak_by="none", keys="body")
def multinomial(
    key: Tracer,
    n: Tracer,
    p: Tracer,
    *,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
) -> Tracer:
    """Returns counts of outcomes of ``n`` trials, with the probabilities ``p`` along the last axis.

    ``shape`` None is ``p.shape``. ``unroll`` is a parameter of `lax.scan`, which runs over the
    outcomes. A real floating ``dtype``, the default one for None. Raises `ShapeError` where ``n``
    and ``p`` do not broadcast, and for a wrong key. As ``jax.random.multinomial``.
    """
    own = read_key("multinomial", key)
    computed = inexact(p.dtype)
    if not p.ndim:
        raise ShapeError("p of random.multinomial has its outcomes along an axis; found 0-d")
    wanted = p.shape if shape is None else normalize_shape("random.multinomial", shape)
    trials = broadcast_parameter("multinomial", "n", n, wanted[:-1], computed)
    chances = broadcast_parameter("multinomial", "p", p, wanted, computed)
    moved: Any = xp.moveaxis(chances, -1, 0)
    left = lax.cumsum(moved, 0, reverse=True)
    ratios = moved / xp.where(left == 0, 1, left)

    def draw(rest: Any, each: tuple[Any, Tracer]) -> tuple[Any, Any]:
        ratio, one = each
        count = binomial(one, rest, xp.clip(ratio, 0, 1), dtype=computed)
        return rest - count, count

    keys = split_key(own, (moved.shape[0],))
    count, step = len(keys), lambda _, rest, each: draw(rest, each)
    rounds = steps_per_round(unroll, count)
    loop = emit_loop("scan", step, trials, (ratios, keys), count, unroll=rounds, widens=True)
    result_dtype = default_float() if dtype is None else as_dtype(dtype)
    return convert(xp.moveaxis(loop[1], 0, -1), result_dtype)


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def geometric(
    key: Tracer, p: Tracer, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Tracer:
    """Returns how many trials, each of success ``p``, there are up to the first success.

    ``shape`` None is ``p.shape``. An integer ``dtype``, the default one for None. Raises
    `DtypeError` for others, `ShapeError` where ``p`` does not broadcast or for a wrong key. As
    ``jax.random.geometric``.
    """
    own, result_dtype = read_key("geometric", key), _integer("geometric", dtype)
    wanted = read_shape("geometric", shape, p)
    computed = inexact(p.dtype)
    u: Any = sample_uniform(own, wanted, computed)
    log_u = xp.log(xp.where(u == 0, 1, u))
    failure: Any = broadcast_parameter("geometric", "p", p, wanted, computed)
    return convert(xp.floor(log_u / xp.log1p(-failure)) + 1, result_dtype)
