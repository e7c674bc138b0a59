"""`reshape`, `transpose`, `broadcast_in_dim`, `pad`, `concatenate` and others."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from plugrt.errors import ArgumentError, ShapeError, ShardingTypeError
from plugrt.lax.dimension_arguments import normalize_dimension, normalize_dimensions
from plugrt.lax.operand_checks import same_dtype
from plugrt.tracing import emit as e
from plugrt.tracing.emit import emit, hlo, strong
from plugrt.tracing.operation import operation
from plugrt.tracing.tracer import Tracer


@operation(static=("new_sizes", "dimensions"), shards=True, keys="each")
def reshape(
    operand: Tracer, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None
) -> Tracer:
    """Returns the array in another shape with as many elements, in row-major order.

    ``dimensions`` is a permutation that is applied first. Any dtype. Raises `ShapeError` where the
    numbers of elements differ. As ``jax.lax.reshape``.
    """
    if dimensions is not None:
        operand = transpose(operand, dimensions)
    sizes = tuple(int(n) for n in new_sizes)
    if math.prod(sizes) != operand.size or any(n < 0 for n in sizes):
        raise ShapeError(f"lax.reshape cannot make shape {sizes} of shape {operand.shape}")
    return e.reshape(operand, sizes)


@operation(static=("permutation",), keys="each")
def transpose(operand: Tracer, permutation: Sequence[int]) -> Tracer:
    """Returns the dimensions in another order.

    Any dtype. Raises `ShapeError` unless ``permutation`` names each dimension once. As
    ``jax.lax.transpose``.
    """
    order = tuple(int(d) for d in permutation)
    if sorted(order) != list(range(operand.ndim)):
        raise ShapeError(
            f"permutation of lax.transpose must hold 0 to {operand.ndim - 1} once each; got {order}"
        )
    return e.transpose(operand, order)


@operation(static=("sizes",), shards=True, keys="each")
def broadcast(operand: Tracer, sizes: Sequence[int]) -> Tracer:
    """Returns copies along new leading dimensions.

    The result has the shape ``(*sizes, *operand.shape)``. Any dtype. Raises `ArgumentTypeError`
    for ``sizes`` that are no sequence of integers. As ``jax.lax.broadcast``.
    """
    return e.broadcast_to(operand, (*(int(n) for n in sizes), *operand.shape))


@operation(static=("shape", "broadcast_dimensions"), shards=True, keys="each")
def broadcast_in_dim(
    operand: Tracer, shape: Sequence[int], broadcast_dimensions: Sequence[int]
) -> Tracer:
    """Returns ``operand`` with its dimension i as dimension ``broadcast_dimensions[i]``.

    Dimensions of 1 are repeated, others must be as long. Any dtype. Raises `ShapeError` where it
    does not fit. As ``jax.lax.broadcast_in_dim``.

    >>> lax.broadcast_in_dim(xp.asarray([1, 2]), (2, 3), (0,))
    Array([[1, 1, 1],
           [2, 2, 2]], dtype=int32)
    """
    sizes = tuple(int(n) for n in shape)
    order = tuple(int(d) for d in broadcast_dimensions)
    fits = len(order) == operand.ndim and all(
        0 <= d < len(sizes) and n in (1, sizes[d])
        for d, n in zip(order, operand.shape, strict=True)
    )
    if not fits or any(a >= b for a, b in itertools.pairwise(order)):
        raise ShapeError(
            f"lax.broadcast_in_dim cannot put shape {operand.shape} into shape {sizes} with its "
            f"dimensions at {order}, which must ascend"
        )
    return e.broadcast_in_dim(operand, sizes, order)


@operation(weak_by=("arr",), keys="each")
def broadcast_like(arr: Tracer, like_arr: Tracer) -> Tracer:
    """Returns ``arr`` repeated to the shape of ``like_arr``, by NumPy's rule.

    Any dtype, which stays. Over Explicit axes it is divided as ``like_arr``. Raises `ShapeError`
    where it does not fit, and `ShardingTypeError` where it is divided otherwise. As
    ``jax.lax.broadcast_like``.

    >>> lax.broadcast_like(xp.asarray([1, 2]), xp.zeros((2, 2)))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    shape = like_arr.shape
    missing = len(shape) - arr.ndim
    if missing < 0 or any(n not in (1, m) for n, m in zip(arr.shape, shape[missing:], strict=True)):
        raise ShapeError(f"lax.broadcast_like cannot repeat shape {arr.shape} to {shape}")
    repeated, sharding = e.broadcast_to(arr, shape), like_arr.sharding_type
    if sharding is None:
        return repeated
    own = repeated.sharding_type
    held = () if own is None else [own.spec.axes_of(i) for i in range(len(shape))]
    for i, axes in enumerate(held):
        if axes not in ((), sharding.spec.axes_of(i)):
            raise ShardingTypeError(
                f"lax.broadcast_like of {own!r} to {sharding!r}: incompatible shardings "
                "for broadcasting; reshard one of them"
            )
    return repeated.constrained(sharding, "broadcast_like")


@operation(static=("dimensions",), keys="each")
def squeeze(array: Tracer, dimensions: Sequence[int]) -> Tracer:
    """Returns the array without these dimensions, which have length 1.

    Any dtype. Raises `ShapeError` for a dimension of another length, `AxisError` for one out of
    range. As ``jax.lax.squeeze``.
    """
    gone = normalize_dimensions("squeeze", dimensions, array.ndim)
    if any(array.shape[d] != 1 for d in gone):
        raise ShapeError(f"lax.squeeze of dimensions {gone} of shape {array.shape}: not all are 1")
    return e.reshape(array, [n for i, n in enumerate(array.shape) if i not in gone])


@operation(static=("dimensions",), keys="each")
def expand_dims(array: Tracer, dimensions: Sequence[int]) -> Tracer:
    """Returns the array with new dimensions of size 1 at these positions of the result.

    Any dtype. Raises `AxisError` for a position out of range or named twice. As
    ``jax.lax.expand_dims``.
    """
    listed = tuple(dimensions)
    new = normalize_dimensions("expand_dims", listed, array.ndim + len(listed))
    old = iter(array.shape)
    return e.reshape(array, [1 if i in new else next(old) for i in range(array.ndim + len(new))])


@operation(static=("start_dimension", "stop_dimension"), keys="each")
def collapse(operand: Tracer, start_dimension: int, stop_dimension: int | None = None) -> Tracer:
    """Returns the array with the dimensions from start up to stop merged into one.

    Any dtype. Raises `ShapeError` where stop is before start. As ``jax.lax.collapse``.

    >>> lax.collapse(xp.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    first, last, _ = slice(start_dimension, stop_dimension).indices(operand.ndim)
    if last < first:
        raise ShapeError(
            f"lax.collapse got start_dimension {first} and stop_dimension {last} for "
            f"{operand.ndim} dimensions; the first must not be above the second"
        )
    joined = math.prod(operand.shape[first:last])
    return e.reshape(operand, (*operand.shape[:first], joined, *operand.shape[last:]))


@operation(static=("dimensions",), keys="each")
def rev(operand: Tracer, dimensions: Sequence[int]) -> Tracer:
    """Returns the elements in reverse order along dimensions.

    Any dtype. Raises `AxisError` for a dimension out of range. As ``jax.lax.rev``.
    """
    along = normalize_dimensions("rev", dimensions, operand.ndim)
    result: Tracer = emit(hlo.reverse, strong(operand), dimensions=list(along))
    return result


@operation(static=("dimension",), keys="each")
def concatenate(operands: Sequence[Tracer], dimension: int) -> Tracer:
    """Returns arrays of one dtype joined along a dimension.

    Raises `DtypeError` or `ShapeError` unless dtypes and other lengths are equal, `AxisError`, and
    `ArgumentError` for no arrays. As ``jax.lax.concatenate``.
    """
    names = [f"operands[{i}]" for i in range(len(operands))]
    if not operands:
        raise ArgumentError("lax.concatenate needs at least one array")
    arrays = same_dtype("concatenate", names, operands)
    at = normalize_dimension("concatenate", dimension, arrays[0].ndim)
    rests = {(*x.shape[:at], *x.shape[at + 1 :]) for x in arrays}
    if len(rests) > 1 or any(x.ndim != arrays[0].ndim for x in arrays):
        shapes = ", ".join(str(x.shape) for x in arrays)
        raise ShapeError(
            f"lax.concatenate takes shapes that differ along dimension {at} alone; found {shapes}"
        )
    return e.concatenate(arrays, at)


@operation(static=("sizes", "axis"), keys="each")
def split(operand: Tracer, sizes: Sequence[int], axis: int = 0) -> list[Tracer]:
    """Returns consecutive parts of these lengths along an axis.

    Any dtype. Raises `ShapeError` where the lengths do not add up. As ``jax.lax.split``.

    >>> lax.split(xp.arange(5), (2, 3))
    [Array([0, 1], dtype=int32), Array([2, 3, 4], dtype=int32)]
    """
    at = normalize_dimension("split", axis, operand.ndim)
    if sum(sizes) != operand.shape[at] or any(n < 0 for n in sizes):
        raise ShapeError(
            f"sizes {list(sizes)} of lax.split must add up to {operand.shape[at]}, the length of "
            f"axis {axis}"
        )
    parts, start = [], 0
    for size in sizes:
        first, last = [0] * operand.ndim, list(operand.shape)
        first[at], last[at] = start, start + size
        parts.append(e.slice_(strong(operand), first, last, [1] * operand.ndim))
        start += size
    return parts


@operation(static=("padding_config",))
def pad(
    operand: Tracer, padding_value: Tracer, padding_config: Sequence[tuple[int, int, int]]
) -> Tracer:
    """Returns ``operand`` with a scalar before, after and between the elements of each dimension.

    ``padding_config`` holds (low, high, interior) for each; negative low and high cut elements off.
    Any dtype, one for both. Raises `DtypeError`, `ShapeError` for a value that is no scalar,
    `ArgumentError` for a wrong configuration. As ``jax.lax.pad``.

    >>> lax.pad(xp.asarray([1, 2]), 0, [(1, 2, 1)])
    Array([0, 1, 0, 2, 0, 0], dtype=int32)
    """
    operand, value = same_dtype("pad", ("operand", "padding_value"), [operand, padding_value])
    if value.shape:
        raise ShapeError(f"padding_value of lax.pad must be a scalar; found shape {value.shape}")
    config = [tuple(int(n) for n in entry) for entry in padding_config]
    if len(config) != operand.ndim or any(len(c) != 3 or c[2] < 0 for c in config):
        raise ArgumentError(
            f"padding_config of lax.pad needs (low, high, interior) for each of {operand.ndim} "
            f"dimensions, interior not negative; got {config}"
        )
    low, high, interior = ([c[i] for c in config] for i in range(3))
    result: Tracer = emit(
        hlo.pad,
        operand,
        value,
        edge_padding_low=low,
        edge_padding_high=high,
        interior_padding=interior,
    )
    return result
