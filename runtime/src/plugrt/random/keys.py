"""Keys of the random number generators: `key`, `split`, `fold_in`, and their words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plugrt.errors import (
    ArgumentError,
    ArgumentTypeError,
    DtypeError,
    IntegerOverflow,
    ShapeError,
)
from plugrt.execution.arrays.array import Array
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.native.known_dtypes import KEY_DTYPES, KeyDtype
from plugrt.random.generators import UINT32, fold_key, make_key, split_key
from plugrt.settings.declarations import config
from plugrt.tracing.argument_checks import normalize_shape
from plugrt.tracing.emit import keys_of, words_of
from plugrt.tracing.key_words import is_key
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import dtype_kind
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArrayLike

_BY_IMPL = {dtype.impl: dtype for dtype in KEY_DTYPES.values()}


@with_argument_errors
def key_dtype(impl_spec: str | KeyDtype | None = None) -> KeyDtype:
    """Returns the dtype of the keys of a generator, by its name; of the default one for None.

    Raises `ArgumentError` for an unknown name, `ArgumentTypeError` for no name. As
    ``jax.random.key_dtype``.

    >>> random.key_dtype("rbg")
    key<rbg>
    """
    if impl_spec is None:
        impl_spec = config.default_prng_impl
    if isinstance(impl_spec, KeyDtype):
        return impl_spec
    if not isinstance(impl_spec, str):
        raise ArgumentTypeError(
            f"a generator is named by a string or a dtype of keys; got {impl_spec!r:.60}"
        )
    found = _BY_IMPL.get(impl_spec)
    if found is None:
        raise ArgumentError(
            f"the generator {impl_spec!r} is not known; there are {', '.join(_BY_IMPL)}"
        )
    return found


def _choose_dtype(function: str, impl: object, dtype: object) -> KeyDtype:
    if impl is not None and dtype is not None:
        raise ArgumentError(f"random.{function} takes impl or dtype, not both")
    named: Any = impl if dtype is None else dtype
    return key_dtype(named)


@with_argument_errors
def key(
    seed: ArrayLike, *, impl: str | KeyDtype | None = None, dtype: str | KeyDtype | None = None
) -> Array:
    """Returns the key of an integer seed, a scalar of a dtype of keys.

    ``dtype``, or ``impl``, names the generator: ``threefry2x32``, the default, or ``rbg`` and
    ``unsafe_rbg``, which draw from the backend's own. Python integers count with their low 32 bits
    unless ``config.enable_x64`` is True, as in JAX; arrays of 64-bit integers with all.

    Raises `ShapeError` for a seed that is no scalar, `DtypeError` for one that is no integer,
    `ArgumentError` for another generator. As ``jax.random.key``.

    >>> random.key(7)
    Array((), dtype=key<fry>) overlaying:
    [0 7]
    """
    made: Array = _make_key(_read_seed(seed), dtype=_choose_dtype("key", impl, dtype))
    return made


@with_argument_errors
def PRNGKey(seed: ArrayLike, *, impl: str | KeyDtype | None = None) -> Array:
    """Returns the words of `key`, an array uint32[2], or uint32[4] for the backend's generator.

    Functions use such words as a key of the default generator, and return words for words. Raises
    `ShapeError`, `DtypeError` and `ArgumentError` as `key` does. As ``jax.random.PRNGKey``.

    >>> random.PRNGKey(7)
    Array([0, 7], dtype=uint32)
    """
    made: Array = _make_words(_read_seed(seed), dtype=key_dtype(impl))
    return made


def _read_seed(seed: Any) -> Any:
    """Returns the seed for the operations below; a Python integer with its low 32 bits."""
    if isinstance(seed, int) and config.enable_x64 is not True:
        if not -(1 << 63) <= seed < 1 << 63:
            raise IntegerOverflow(f"the seed {seed} does not fit int64")
        return np.uint32(seed & 0xFFFFFFFF)
    return seed


@operation(static=("dtype",), weak_by="none", title="key")
def _make_key(seed: Tracer, *, dtype: KeyDtype) -> Tracer:
    if seed.shape:
        raise ShapeError(f"a seed is a scalar; found shape {seed.shape}")
    if dtype_kind(seed.dtype) not in "iu":
        raise DtypeError(f"a seed is an integer; found {seed.dtype.name}")
    return make_key(seed, dtype)


@operation(static=("dtype",), weak_by="none", title="PRNGKey")
def _make_words(seed: Tracer, *, dtype: KeyDtype) -> Tracer:
    return words_of(_make_key(seed, dtype=dtype))


@operation(static=("num",), weak_by="none", keys="body")
def split(key: Tracer, num: int | Sequence[int] = 2) -> Tracer:
    """Returns ``num`` (an integer, or a shape) new keys along leading axes, for unrelated numbers.

    Raises `DtypeError` or `ShapeError` unless they are one key and a shape. As
    ``jax.random.split``.

    >>> random.split(random.key(0), 3).shape
    (3,)
    """
    keys = split_key(read_key("split", key), normalize_shape("random.split", num, what="num"))
    return keys if is_key(key) else words_of(keys)


@operation(weak_by="none", keys="body")
def fold_in(key: Tracer, data: Tracer) -> Tracer:
    """Returns a new key that depends on a key and an integer (its low 32 bits).

    Raises `DtypeError` or `ShapeError` unless they are one key and one integer, and
    `IntegerOverflow` for a Python integer that neither int32 nor uint32 holds. As
    ``jax.random.fold_in``.

    >>> random.key_data(random.fold_in(random.key(0), 7))
    Array([2716826189,  292468403], dtype=uint32)
    """
    own = read_key("fold_in", key)
    if data.shape:
        raise ShapeError(f"fold_in takes one integer; found shape {data.shape}")
    if dtype_kind(data.dtype) not in "iu":
        raise DtypeError(f"fold_in takes an integer; found {data.dtype.name}")
    made = fold_key(own, data)
    return made if is_key(key) else words_of(made)


@operation(weak_by="none", keys="body")
def key_data(keys: Tracer) -> Tracer:
    """Returns the words of keys, uint32 with one more dimension, the last.

    Raises `DtypeError` for another array, `NotAnArray` for no array. As
    ``jax.random.key_data``.
    """
    return words_of(read_keys("key_data", keys))


@operation(static=("impl", "dtype"), weak_by="none")
def wrap_key_data(
    key_bits_array: Tracer,
    *,
    impl: str | KeyDtype | None = None,
    dtype: str | KeyDtype | None = None,
) -> Tracer:
    """Returns words, uint32 with the words of a key along the last dimension, as keys.

    ``dtype`` or ``impl`` names the generator, as in `key`. Raises `DtypeError` for others than
    uint32, `ShapeError` for a last dimension of another size than its keys have. As
    ``jax.random.wrap_key_data``.
    """
    return _wrap("wrap_key_data", key_bits_array, _choose_dtype("wrap_key_data", impl, dtype))


def _wrap(function: str, words: Tracer, dtype: KeyDtype) -> Tracer:
    if words.dtype != UINT32:
        raise DtypeError(
            f"the key of random.{function} must be uint32; found {words.dtype.name}. Make keys "
            "with random.key(seed)"
        )
    if words.shape[-1:] != (dtype.words,):
        raise ShapeError(
            f"random.{function} takes words of {dtype.impl}, with a last dimension of "
            f"{dtype.words}; found shape {words.shape}"
        )
    return keys_of(words, dtype)


@operation(weak_by="none", keys="body")
def clone(key: Tracer) -> Tracer:
    """Returns the same key or array of keys; plugrt does not check that keys are used once.

    Raises `DtypeError` for another array. As ``jax.random.clone``.
    """
    return key


@with_argument_errors
def key_impl(keys: Any) -> str:
    """Returns the name of the generator of keys; of words it is the default one.

    Raises `ArgumentTypeError` for other objects than arrays. As ``jax.random.key_impl``.

    >>> random.key_impl(random.key(0))
    'threefry2x32'
    """
    dtype = getattr(keys, "dtype", None)
    if dtype is None:
        raise ArgumentTypeError(f"random.key_impl takes keys; got {keys!r:.60}")
    return dtype.impl if isinstance(dtype, KeyDtype) else key_dtype().impl


def read_keys(function: str, keys: Tracer) -> Tracer:
    """Returns keys, or words as keys of the default generator; raises `DtypeError` for others."""
    return keys if is_key(keys) else _wrap(function, keys, key_dtype())


def read_key(function: str, key: Tracer) -> Tracer:
    """Returns one key as `read_keys`; raises `ShapeError` for several."""
    found = read_keys(function, key)
    if found.shape:
        raise ShapeError(
            f"random.{function} takes one key; found keys of shape {found.shape}. Take one of them "
            "with keys[i], or all in turn with lax.map"
        )
    return found


__all__ = [
    "PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split",
    "wrap_key_data",
]  # fmt: skip
