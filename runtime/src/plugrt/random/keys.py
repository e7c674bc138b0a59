"""Keys of the random number generator: `PRNGKey`, `split`, `fold_in`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrt import lax as _lax
from plugrt.errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError
from plugrt.execution.arrays.array import Array
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.random.threefry import UINT32, add_barrier, key_words, split_key, threefry2x32
from plugrt.tracing.argument_checks import normalize_shape
from plugrt.tracing.emit import concatenate, constant, convert, emit, full, hlo, reshape
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import dtype_kind
from plugrt.tracing.tracer import Tracer


@operation(static=("impl",), weak_by="none")
def PRNGKey(seed: Tracer, *, impl: str | None = None) -> Tracer:
    """Returns the key of an integer seed, an array uint32[2] that holds its 64 bits.

    Seeds of 32 bits, also negative ones, have a high word of 0, as in ``jax.random.PRNGKey``; a
    Python integer that needs 64 bits gives both words. The only ``impl`` is ``threefry2x32``.
    Raises `DtypeError` for a seed that is no integer, `ShapeError` for one that is no scalar,
    `ArgumentError` for another ``impl``.

    >>> random.PRNGKey(7)
    Array([0, 7], dtype=uint32)
    """
    if impl not in (None, "threefry2x32"):
        raise ArgumentError(f"impl {impl!r} is not known; the generator is 'threefry2x32'")
    if seed.shape:
        raise ShapeError(f"a seed is a scalar; found shape {seed.shape}")
    if dtype_kind(seed.dtype) not in "iu":
        raise DtypeError(f"a seed is an integer; found {seed.dtype.name}")
    high = constant(0, UINT32)
    if seed.dtype.itemsize == 8:
        shifted = emit(hlo.shift_right_logical, seed, full((), 32, seed.dtype))
        high = convert(shifted, UINT32)
    low = convert(seed, UINT32)
    return concatenate([reshape(high, (1,)), reshape(low, (1,))], 0)


key = PRNGKey
"""As `PRNGKey`: keys are plain arrays (``jax.random.key`` returns an array of a dtype of keys)."""


@operation(static=("num",), weak_by="none")
def split(key: Tracer, num: int | Sequence[int] = 2) -> Tracer:
    """Returns ``num`` (an integer, or a shape) new keys along leading axes, for unrelated numbers.

    The result has the shape ``(*num, 2)``. Raises `DtypeError` or `ShapeError` for what is not one
    key or a shape. As ``jax.random.split``.

    >>> random.split(random.PRNGKey(0), 3).shape
    (3, 2)
    """
    check_key("split", key)
    return split_key(key, normalize_shape("random.split", num, what="num"))


@operation(weak_by="none")
def fold_in(key: Tracer, data: Tracer) -> Tracer:
    """Returns the key that a key and an integer (its low 32 bits) give together.

    Raises `DtypeError` or `ShapeError` for what is not one key or one integer. As
    ``jax.random.fold_in``.

    >>> random.fold_in(random.PRNGKey(0), 7)
    Array([2716826189,  292468403], dtype=uint32)
    """
    check_key("fold_in", key)
    if data.shape:
        raise ShapeError(f"fold_in takes one integer; found shape {data.shape}")
    if dtype_kind(data.dtype) not in "iu":
        raise DtypeError(f"fold_in takes an integer; found {data.dtype.name}")
    pair = threefry2x32(key_words(key), constant(0, UINT32), convert(data, UINT32))
    return add_barrier(concatenate([reshape(w, (1,)) for w in pair], 0))


@with_argument_errors
def key_data(keys: Array) -> Array:
    """Returns the words of keys: the array itself, uint32 of shape (…, 2).

    Raises `ArgumentTypeError` for what is no array. As ``jax.random.key_data``.
    """
    return _require_array("key_data", keys)


@with_argument_errors
def wrap_key_data(key_bits_array: Array, *, impl: str | None = None) -> Array:
    """Returns words as keys: the array itself.

    Raises `ArgumentError` for another ``impl``. As ``jax.random.wrap_key_data``.
    """
    if impl not in (None, "threefry2x32"):
        raise ArgumentError(f"impl {impl!r} is not known; the generator is 'threefry2x32'")
    return _require_array("wrap_key_data", key_bits_array)


def _require_array(function: str, words: Array) -> Array:
    if not (hasattr(words, "shape") and hasattr(words, "dtype")):
        raise ArgumentTypeError(f"random.{function} takes an array of words; got {words!r:.60}")
    return words


def check_key(function: str, key: Tracer) -> None:
    """Raises `ShapeError` or `DtypeError` unless this is one key."""
    if key.dtype != UINT32:
        raise DtypeError(
            f"the key of random.{function} must be uint32; found {key.dtype.name}. Make keys with "
            "random.PRNGKey(seed)"
        )
    if key.shape != (2,):
        raise ShapeError(
            f"random.{function} takes one key, of shape (2,); found shape {key.shape}. Take one "
            "of several keys with keys[i]"
        )


__all__ = ["PRNGKey", "fold_in", "key", "key_data", "split", "wrap_key_data"]


lax: Any = _lax
"""`plugrt.lax` typed for use on tracers, inside operation bodies: its types name no tracers."""
