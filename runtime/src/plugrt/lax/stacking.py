"""`stack`, `unstack`, `tile`, `broadcast_to_rank` and `broadcast_shapes`."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from plugrt.array_api import manipulation, repetition
from plugrt.array_api.elementwise import operands as elementwise
from plugrt.errors import ArgumentError, DtypeError, ShapeError
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.lax.dimension_arguments import per_dimension
from plugrt.tracing.emit import reshape
from plugrt.tracing.operation import operation
from plugrt.tracing.tracer import Tracer


@with_argument_errors
def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Returns the shape that arrays of these shapes broadcast to, by NumPy's rule.

    Raises `ShapeError` where they do not. As ``jax.lax.broadcast_shapes``.

    >>> lax.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    listed = tuple(tuple(operator.index(n) for n in shape) for shape in shapes)
    found = elementwise.broadcast_shapes(listed)
    if found is None:
        raise ShapeError(f"the shapes {', '.join(map(str, listed))} do not broadcast to one")
    return found


@operation(static=("rank",), keys="each")
def broadcast_to_rank(x: Tracer, rank: int) -> Tracer:
    """Returns an array with leading dimensions of size 1 added, so that it has ``rank`` dimensions.

    Any dtype. Raises `ShapeError` for an array with more. As ``jax.lax.broadcast_to_rank``.
    """
    if rank < x.ndim:
        raise ShapeError(f"lax.broadcast_to_rank cannot give shape {x.shape} the rank {rank}")
    return reshape(x, (*(1,) * (rank - x.ndim), *x.shape))


@operation(static=("axis",), keys="each")
def stack(operands: Sequence[Tracer], axis: int = 0) -> Tracer:
    """Returns arrays of one shape and dtype joined along a new axis.

    Raises `ArgumentError` for no arrays, `ShapeError`, `DtypeError`, and `AxisError` for an axis
    that the result does not have. As ``jax.lax.stack``.

    >>> lax.stack([xp.asarray([1, 2]), xp.asarray([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    arrays = list(operands)
    if not arrays:
        raise ArgumentError("lax.stack takes one array or more; found none")
    shape = arrays[0].shape
    if any(x.shape != shape for x in arrays):
        listed = ", ".join(str(x.shape) for x in arrays)
        raise ShapeError(f"lax.stack takes arrays of one shape; found {listed}")
    if any(x.dtype != arrays[0].dtype for x in arrays):
        listed = ", ".join(x.dtype.name for x in arrays)
        raise DtypeError(
            f"lax.stack takes arrays of one dtype; found {listed}. Convert with "
            "lax.convert_element_type, or use array_api.stack, which promotes"
        )
    result: Tracer = manipulation.stack(arrays, axis=axis)
    return result


@operation(static=("axis",), keys="each")
def unstack(x: Tracer, axis: int = 0) -> tuple[Tracer, ...]:
    """Returns the slices of an array along an axis, without that axis.

    Any dtype. Raises `AxisError`. As ``jax.lax.unstack``.
    """
    parts: tuple[Tracer, ...] = tuple(manipulation.unstack(x, axis=axis))
    return parts


@operation(static=("reps",), keys="each")
def tile(operand: Tracer, reps: Sequence[int]) -> Tracer:
    """Returns an array repeated as a whole, ``reps[i]`` times along dimension i.

    Any dtype. Raises `ArgumentError` unless there is one number, 0 or more, for each dimension. As
    ``jax.lax.tile``.

    >>> lax.tile(xp.asarray([1, 2]), (2,))
    Array([1, 2, 1, 2], dtype=int32)
    """
    times = per_dimension("tile", "reps", reps, operand.ndim)
    if any(n < 0 for n in times):
        raise ArgumentError(f"reps of lax.tile are 0 or more; got {times}")
    result: Tracer = repetition.tile(operand, tuple(times))
    return result
