"""`permutation` and `choice`."""

from __future__ import annotations

import math

import numpy as np

from plugrt.errors import ArgumentError, ShapeError
from plugrt.execution.arrays.array import Array
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.lax.control_flow.counted_loop import emit_loop
from plugrt.lax.gathering import take_rows
from plugrt.random.continuous import Shape, gumbel, uniform
from plugrt.random.discrete import randint
from plugrt.random.generators import lax, random_bits, read_row, split_key
from plugrt.random.keys import read_key
from plugrt.tracing.argument_checks import normalize_axis, normalize_shape
from plugrt.tracing.emit import constant, convert, full, iota, reshape
from plugrt.tracing.key_words import by_words, is_key
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import default_float, default_int, dtype_kind
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArrayLike, KeyArray, OutSharding


@with_argument_errors
def permutation(
    key: KeyArray,
    x: ArrayLike,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Returns ``x`` with its elements along ``axis`` in random order; an integer means a range.

    With ``independent`` each vector along the axis has an order of its own. Any dtype. Raises
    `ShapeError` for a 0-d array or a wrong key, `AxisError`. As ``jax.random.permutation``.

    >>> xp.sort(random.permutation(random.PRNGKey(0), 4))
    Array([0, 1, 2, 3], dtype=int32)
    """
    if isinstance(x, int | np.integer):
        ordered: Array = _permute_range(key, int(x), out_sharding=out_sharding)
        return ordered
    permuted: Array = _permute(key, x, axis, independent, out_sharding=out_sharding)
    return permuted


@operation(static=("count",), weak_by="none", shards=True, keys="body")
def _permute_range(key: Tracer, count: int) -> Tracer:
    key = read_key("permutation", key)
    return _shuffle(key, iota((max(count, 0),), 0, default_int()), 0)


@operation(static=("axis", "independent"), weak_by=("x",), shards=True, keys="body")
def _permute(key: Tracer, x: Tracer, axis: int, independent: bool) -> Tracer:
    key = read_key("permutation", key)
    if not x.ndim:
        raise ShapeError(
            "random.permutation takes a Python integer or an array with dimensions; found a 0-d "
            "array"
        )
    at = normalize_axis("random.permutation", axis, x.ndim)
    if independent or (x.ndim == 1 and not is_key(x)):
        return _shuffle(key, x, at)
    order = _shuffle(key, iota((x.shape[at],), 0, default_int()), 0)
    permuted: Tracer = by_words("each", take_rows, x, order, at)
    return permuted


def _shuffle(key: Tracer, x: Tracer, axis: int) -> Tracer:
    """Sorts by random 32-bit words, often enough that equal words do not matter.

    The number of rounds is JAX's, so the orders are JAX's, too.
    """
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(2**32 - 1))
    for _ in range(rounds):
        pair = split_key(key, (2,))
        key = read_row(pair, 0)
        words = random_bits(read_row(pair, 1), 32, x.shape)
        x = lax.sort_key_val(words, x, axis)[1]
    return x


@with_argument_errors
def choice(
    key: KeyArray,
    a: ArrayLike,
    shape: Shape = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Returns random elements of ``a`` along ``axis``; an integer means a range.

    ``p`` are their probabilities (None: all equal). Without ``replace`` none is drawn twice; then
    ``mode`` is passed to `gumbel`. In the result, ``shape`` replaces the axis. Raises
    `ArgumentError` for more draws than elements without replacement, `ShapeError` for a ``p`` of
    another length or a wrong key, `AxisError`. As ``jax.random.choice``.

    >>> random.choice(random.PRNGKey(0), xp.asarray([7, 8, 9]), (5,)).shape
    (5,)
    """
    if isinstance(a, int | np.integer):
        places: Array = _choice_of_range(key, p, int(a), shape, replace, mode)
        return places
    chosen: Array = _choice(key, a, p, shape, replace, axis, mode)
    return chosen


@operation(static=("count", "shape", "replace", "mode"), weak_by="none", keys="body")
def _choice_of_range(
    key: Tracer, p: Tracer | None, count: int, shape: Shape, replace: bool, mode: str | None
) -> Tracer:
    key = read_key("choice", key)
    wanted = _check_choice(p, count, shape, replace)
    if p is None and not replace:
        order = _shuffle(key, iota((count,), 0, default_int()), 0)
        return reshape(lax.slice(order, [0], [math.prod(wanted)]), wanted)
    return _draw(key, p, count, wanted, replace, mode)


@operation(static=("shape", "replace", "axis", "mode"), weak_by=("a",), keys="body")
def _choice(
    key: Tracer,
    a: Tracer,
    p: Tracer | None,
    shape: Shape,
    replace: bool,
    axis: int,
    mode: str | None,
) -> Tracer:
    if not a.ndim:
        raise ShapeError(
            "random.choice takes a Python integer or an array with dimensions; found a 0-d array"
        )
    at = normalize_axis("random.choice", axis, a.ndim)
    key = read_key("choice", key)
    wanted = _check_choice(p, a.shape[at], shape, replace)
    if p is None and not replace:
        order = _permute(key, a, at, False)
        some = lax.slice_in_dim(order, 0, math.prod(wanted), 1, at)
    else:
        some = by_words("each", take_rows, a, _draw(key, p, a.shape[at], wanted, replace, mode), at)
    shaped: Tracer = lax.reshape(some, (*a.shape[:at], *wanted, *a.shape[at + 1 :]))
    return shaped


def _check_choice(p: Tracer | None, count: int, shape: object, replace: bool) -> Shape:
    wanted = normalize_shape("random.choice", shape)
    draws = math.prod(wanted)
    if draws and not count:
        raise ArgumentError("random.choice has nothing to choose from")
    if not replace and draws > count:
        raise ArgumentError(
            f"random.choice cannot draw {draws} of {count} places without replacement"
        )
    if p is not None and p.shape != (count,):
        raise ShapeError(
            f"p of random.choice needs a probability for each of {count} places; found shape "
            f"{p.shape}"
        )
    return wanted


def _draw(
    key: Tracer, p: Tracer | None, count: int, shape: Shape, replace: bool, mode: str | None
) -> Tracer:
    """Returns drawn places as default integers."""
    if p is None:
        limits = constant(0, default_int()), constant(count, default_int())
        drawn: Tracer = randint(key, shape, *limits)
        return drawn
    chances = p if dtype_kind(p.dtype) == "f" else convert(p, default_float())
    if replace:
        sums = lax.cumsum(chances, 0)
        last = reshape(lax.slice(sums, [count - 1], [count]), ())
        left = lax.sub(constant(1, sums.dtype), uniform(key, shape, sums.dtype))
        return convert(_search(sums, lax.mul(last, left)), default_int())
    # Sampling without replacement is taking the largest of log-probabilities with Gumbel noise.
    noisy = lax.add(gumbel(key, (count,), chances.dtype, mode), lax.log(chances))
    found = lax.top_k(noisy, math.prod(shape))[1]
    return reshape(convert(found, default_int()), shape)


def _search(ascending: Tracer, values: Tracer) -> Tracer:
    """Returns for each value how many elements are below it, by halving."""
    count = ascending.shape[0]
    int32 = np.dtype(np.int32)

    def halve(_: Tracer, bounds: tuple[Tracer, Tracer]) -> tuple[Tracer, Tracer]:
        low, high = bounds
        middle = lax.div(lax.add(low, high), constant(2, int32))
        below = lax.lt(take_rows(ascending, lax.min(middle, constant(count - 1, int32)), 0), values)
        below = lax.bitwise_and(below, lax.lt(low, high))
        low = lax.select(below, lax.add(middle, constant(1, int32)), low)
        return low, lax.select(below, high, lax.min(middle, high))

    start = (full(values.shape, 0, int32), full(values.shape, count, int32))
    step = lambda i, bounds, _: (halve(i, bounds), None)  # noqa: E731
    found: Tracer
    (found, _), _ = emit_loop("search", step, start, None, count.bit_length(), widens=True)
    return found
