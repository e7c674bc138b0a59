"""`associative_scan`: prefix combinations in logarithmic depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plugrt.errors import ArgumentError, ShapeError
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.lax.control_flow.eager import launch
from plugrt.lax.dimension_arguments import normalize_dimension
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import (
    concatenate,
    emit,
    hlo,
    reshape,
    slice_,
)
from plugrt.tracing.tracer import Tracer


@with_argument_errors
def associative_scan(
    fn: Callable[[Any, Any], object], elems: object, reverse: bool = False, axis: int = 0
) -> Any:
    """Returns the running combinations along an axis of a pytree of arrays.

    ``fn`` combines two trees of slices of arrays, elementwise along the axis, and must be
    associative. With ``reverse`` from the end. Any dtypes; the results have the shapes of
    ``elems``. Raises `ShapeError` where the lengths along the axis differ, `ArgumentError` for a
    tree without arrays. As ``jax.lax.associative_scan``.

    >>> lax.associative_scan(lambda a, b: a * b, xp.asarray([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int32)
    """

    def run(elems: object) -> Any:
        leaves, spec = pytrees.flatten(elems)
        if not leaves:
            raise ArgumentError("lax.associative_scan needs at least one array")
        at = normalize_dimension("associative_scan", axis, leaves[0].ndim)
        lengths = {x.shape[at] if at < x.ndim else None for x in leaves}
        if len(lengths) > 1:
            shapes = ", ".join(str(x.shape) for x in leaves)
            raise ShapeError(
                f"the arrays of lax.associative_scan need one length along {at}; found {shapes}"
            )

        def combine(a: list[Tracer], b: list[Tracer]) -> list[Tracer]:
            flat = pytrees.flatten(fn(pytrees.unflatten(spec, a), pytrees.unflatten(spec, b)))[0]
            return [as_tracer(x, "the result of fn of associative_scan") for x in flat]

        given = [_reverse(x, at) if reverse else x for x in leaves]
        found = _scan_pairs(combine, given, at)
        return pytrees.unflatten(spec, [_reverse(x, at) if reverse else x for x in found])

    return launch(
        "associative_scan", (fn,), (bool(reverse), axis), {"elems": elems}, run, reads_once=False
    )


def _scan_pairs(
    combine: Callable[[list[Tracer], list[Tracer]], list[Tracer]], xs: list[Tracer], axis: int
) -> list[Tracer]:
    """Combines pairs of neighbours, scans the results, and computes the elements between them."""
    length = xs[0].shape[axis]
    if length < 2:
        return xs
    pairs = combine(
        [_slice_axis(x, axis, 0, length - 1, 2) for x in xs],
        [_slice_axis(x, axis, 1, length, 2) for x in xs],
    )
    odd = _scan_pairs(combine, pairs, axis)
    before = [_slice_axis(x, axis, 0, (length - 1) // 2, 1) for x in odd]
    between = (
        combine(before, [_slice_axis(x, axis, 2, length, 2) for x in xs]) if length > 2 else None
    )
    first = [_slice_axis(x, axis, 0, 1, 1) for x in xs]
    even = (
        first
        if between is None
        else [concatenate([f, b], axis) for f, b in zip(first, between, strict=True)]
    )
    return [_interleave(e, o, axis) for e, o in zip(even, odd, strict=True)]


def _slice_axis(x: Tracer, axis: int, start: int, limit: int, step: int) -> Tracer:
    first, last, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
    first[axis], last[axis], steps[axis] = start, limit, step
    return slice_(x, first, last, steps)


def _interleave(even: Tracer, odd: Tracer, axis: int) -> Tracer:
    """Returns elements of both alternately; ``even`` may have one more."""
    count = odd.shape[axis]
    wide = (*odd.shape[: axis + 1], 1, *odd.shape[axis + 1 :])
    pair = [reshape(x, wide) for x in (_slice_axis(even, axis, 0, count, 1), odd)]
    joined = reshape(
        concatenate(pair, axis + 1), (*odd.shape[:axis], 2 * count, *odd.shape[axis + 1 :])
    )
    if even.shape[axis] == count:
        return joined
    return concatenate([joined, _slice_axis(even, axis, count, count + 1, 1)], axis)


def _reverse(x: Tracer, axis: int) -> Tracer:
    result: Tracer = emit(hlo.reverse, x, dimensions=[axis])
    return result
