"""`einsum`: sums of products of arrays, written with a letter for each axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from plugrt.array_api.elementwise.operands import ANY, common_dtype
from plugrt.array_api.manipulation import moveaxis, permute_dims, squeeze
from plugrt.array_api.matrix_products import dot
from plugrt.array_api.searching import where
from plugrt.array_api.statistics import sum
from plugrt.array_api.utility import any
from plugrt.errors import ArgumentError, ShapeError
from plugrt.tracing.emit import convert, full, iota
from plugrt.tracing.operation import operation
from plugrt.tracing.tracer import Tracer

_INDEX = np.dtype(np.int32)
Label = str | int
"""An axis: a letter; for an axis of an ellipsis its position from the end, from -1."""


class _Term(NamedTuple):
    """An operand with a different label for each of its axes."""

    x: Tracer
    labels: tuple[Label, ...]


@operation(static=("subscripts", "optimize"), shards=True)
def einsum(subscripts: str, /, *operands: Tracer, optimize: str | bool = "optimal") -> Tracer:
    """Returns the sum of products of the operands over the axes that the result does not name.

    ``subscripts`` name the axes of the operands, separated by commas, by letters: axes with the
    same letter have the same size, or 1. After ``->`` come the axes of the result; without that
    these are the letters that occur once, in alphabetical order. ``...`` stands for leading axes
    that broadcast. ``optimize`` is the order of the products as ``numpy.einsum_path`` finds it:
    "optimal", "greedy", True (greedy) or False, from the left. Dtypes as of `matmul`. Raises
    `ArgumentError` for subscripts that do not fit the operands, `ShapeError` for sizes that do not
    fit each other. As ``jax.numpy.einsum``, with subscripts as text only.

    >>> xp.einsum("ij,j->i", xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 10]))
    Array([21, 43], dtype=int32)
    """
    inputs, output = _parse(subscripts, [x.ndim for x in operands])
    names = tuple(f"operand {i}" for i in range(len(operands)))
    dtype = common_dtype("einsum", operands, ANY, names)
    sizes = _find_sizes(subscripts, inputs, operands)
    terms = [
        _unrepeat(_Term(convert(x, dtype), labels), sizes)
        for x, labels in zip(operands, inputs, strict=True)
    ]
    for chosen in _find_order(subscripts, operands, optimize):
        picked = [terms.pop(i) for i in sorted(chosen, reverse=True)][::-1]
        needed = {*output, *(label for term in terms for label in term.labels)}
        while len(picked) > 1:
            rest = needed | {label for term in picked[2:] for label in term.labels}
            picked[:2] = [_multiply(picked[0], picked[1], rest)]
        terms.append(_sum_out(picked[0], needed))
    (last,) = terms
    result: Tracer = permute_dims(last.x, tuple(last.labels.index(label) for label in output))
    return result


def _parse(
    subscripts: str, dimensions: Sequence[int]
) -> tuple[list[tuple[Label, ...]], tuple[Label, ...]]:
    """Returns the labels of the operands and of the result."""
    if not isinstance(subscripts, str):
        raise ArgumentError(
            f"einsum takes its subscripts first, as text ('ij,jk->ik'); got {subscripts!r:.60}"
        )
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    parts = left.split(",")
    if len(parts) != len(dimensions):
        raise ArgumentError(
            f"subscripts of einsum are {subscripts!r}, of {len(parts)} operands; got "
            f"{len(dimensions)} arrays"
        )
    inputs = [_read_labels(subscripts, *pair) for pair in zip(parts, dimensions, strict=True)]
    counts = Counter(label for labels in inputs for label in labels)
    dots = sorted(label for label in counts if isinstance(label, int))
    if arrow:
        expanded = _read_labels(subscripts, right, len(right.replace("...", "")) + len(dots))
        wrong = [x for x in expanded if x not in counts or expanded.count(x) > 1]
        if wrong:
            raise ArgumentError(
                f"subscripts of einsum are {subscripts!r}: the result has {wrong[0]!r}, which "
                "must be of some operand, and once in the result"
            )
        return inputs, expanded
    once = sorted(x for x, n in counts.items() if isinstance(x, str) and n == 1)
    return inputs, (*dots, *once)


def _read_labels(subscripts: str, part: str, ndim: int) -> tuple[Label, ...]:
    before, dots, after = part.partition("...")
    letters = before + after
    fits = len(letters) <= ndim if dots else len(letters) == ndim
    if not fits or not (letters.isalpha() or not letters):
        raise ArgumentError(
            f"subscripts of einsum are {subscripts!r}: {part!r} does not name the axes of an array "
            f"of {ndim} dimensions; it takes a letter for each, and '...' for the others"
        )
    return (*before, *range(len(letters) - ndim, 0), *after) if dots else tuple(before)


def _find_sizes(
    subscripts: str, inputs: Sequence[Sequence[Label]], operands: Sequence[Tracer]
) -> dict[Label, int]:
    sizes: dict[Label, int] = {}
    for labels, x in zip(inputs, operands, strict=True):
        for label, size in zip(labels, x.shape, strict=True):
            known = sizes.setdefault(label, size)
            if size != known and 1 not in (size, known):
                shapes = ", ".join(str(x.shape) for x in operands)
                raise ShapeError(
                    f"einsum of {subscripts!r} got operands of shapes {shapes}, where axis "
                    f"{label!r} has sizes {known} and {size}"
                )
            if known == 1:
                sizes[label] = size
    return sizes


def _unrepeat(term: _Term, sizes: dict[Label, int]) -> _Term:
    """Returns an operand without broadcast axes, and with the diagonal of axes of one label."""
    x, labels = term
    alone = tuple(i for i, name in enumerate(labels) if x.shape[i] == 1 and sizes[name] != 1)
    x = squeeze(x, axis=alone)
    kept = [label for i, label in enumerate(labels) if i not in alone]
    for label in [label for label, n in Counter(kept).items() for _ in range(n - 1)]:
        first, second = [i for i, other in enumerate(kept) if other == label][:2]
        x = moveaxis(x, (first, second), (-2, -1))
        on = iota(x.shape[-2:], 0, _INDEX) == iota(x.shape[-2:], 1, _INDEX)
        x = _add_up(where(on, x, full((), 0, x.dtype)), (-1,))
        kept = [o for i, o in enumerate(kept) if i not in (first, second)] + [label]
    return _Term(x, tuple(kept))


def _find_order(
    subscripts: str, operands: Sequence[Tracer], optimize: str | bool
) -> list[tuple[int, ...]]:
    """Returns the operands of each product in order; results are appended to the operands."""
    if len(operands) < 3 or optimize is False:
        return [(0, 1)] * (len(operands) - 1) if len(operands) > 1 else [(0,)]
    shapes = [np.broadcast_to(np.float32(0), x.shape) for x in operands]
    order = "greedy" if optimize is True else optimize
    path, _ = np.einsum_path(subscripts, *shapes, optimize=order)
    return list(path[1:])


def _sum_out(term: _Term, needed: Collection[Label]) -> _Term:
    gone = tuple(i for i, label in enumerate(term.labels) if label not in needed)
    if not gone:
        return term
    return _Term(_add_up(term.x, gone), tuple(x for x in term.labels if x in needed))


def _add_up(x: Tracer, axis: tuple[int, ...]) -> Tracer:
    result: Tracer = any(x, axis=axis) if x.dtype == np.bool_ else sum(x, axis=axis, dtype=x.dtype)
    return result


def _multiply(a: _Term, b: _Term, needed: Collection[Label]) -> _Term:
    """Returns the product of two operands, summed over the axes that are not ``needed``."""
    a = _sum_out(a, {*needed, *b.labels})
    b = _sum_out(b, {*needed, *a.labels})
    shared = [label for label in a.labels if label in b.labels]
    batch = [label for label in shared if label in needed]
    summed = [label for label in shared if label not in needed]
    x, left = _put_first(a, batch)
    y, right = _put_first(b, batch)
    along = [[labels.index(label) for label in summed] for labels in (left, right)]
    result = dot(x, y, along[0], along[1], range(len(batch)))
    free = [label for labels in (left, right) for label in labels if label not in shared]
    return _Term(result, (*batch, *free))


def _put_first(term: _Term, batch: Sequence[Label]) -> tuple[Tracer, list[Label]]:
    order = [*batch, *(label for label in term.labels if label not in batch)]
    return permute_dims(term.x, tuple(term.labels.index(label) for label in order)), order
