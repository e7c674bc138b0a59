"""Arrays of random keys in a trace: their words, and operations on each word separately."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from plugrt.errors import DtypeError
from plugrt.execution.trees import pytrees
from plugrt.native.known_dtypes import KeyDtype, is_key_dtype
from plugrt.stablehlo.bindings import hlo
from plugrt.tracing.emit import (
    active_trace,
    concatenate,
    emit,
    keys_of,
    reshape,
    slice_,
    words_of,
)
from plugrt.tracing.tracer import Tracer


def is_key(x: object) -> bool:
    """Whether it is a traced array of random keys."""
    return type(x) is Tracer and is_key_dtype(x.dtype)


def by_words(how: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Returns ``function(*args, **kwargs)``, called with one word of all keys in it at a time.

    ``function`` only moves or compares elements. The results for each word are joined as ``how``
    says: "each" makes keys of them, "all" and "any" join booleans. Without keys it is one call.
    """
    if not active_trace().has_keys:
        return function(*args, **kwargs)
    leaves, structure = pytrees.flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if is_key(leaf)]
    if not places:
        return function(*args, **kwargs)
    dtype = require_one_dtype([leaves[i] for i in places])
    words = {i: _split_words(leaves[i]) for i in places}
    made: list[Sequence[Tracer]] = []
    for k in range(dtype.words):
        own_args, own_kwargs = pytrees.unflatten(
            structure, [words[i][k] if i in words else leaf for i, leaf in enumerate(leaves)]
        )
        results, form = pytrees.flatten(function(*own_args, **own_kwargs))
        made.append(results)
    joined = [_join_words(each, dtype, how) for each in zip(*made, strict=True)]
    return pytrees.unflatten(form, joined)


def require_one_dtype(keys: Sequence[Tracer]) -> KeyDtype:
    """Returns the dtype of keys; raises `DtypeError` for keys of different generators."""
    dtypes = {key.dtype for key in keys}
    if len(dtypes) > 1:
        raise DtypeError(
            f"keys of different generators meet: {', '.join(sorted(d.name for d in dtypes))}"
        )
    [dtype] = dtypes
    found: Any = dtype
    assert isinstance(found, KeyDtype)
    return found


def _split_words(keys: Tracer) -> list[Tracer]:
    words, ndim = words_of(keys), keys.ndim
    ones = [1] * (ndim + 1)
    return [
        reshape(slice_(words, [*[0] * ndim, k], [*keys.shape, k + 1], ones), keys.shape)
        for k in range(words.shape[-1])
    ]


def _join_words(words: Sequence[Tracer], dtype: KeyDtype, how: str) -> Tracer:
    if how == "each":
        shape = words[0].shape
        columns = [reshape(word, (*shape, 1)) for word in words]
        return keys_of(concatenate(columns, len(shape)), dtype)
    join = hlo.and_ if how == "all" else hlo.or_
    return reduce(lambda a, b: emit(join, a, b), words)
