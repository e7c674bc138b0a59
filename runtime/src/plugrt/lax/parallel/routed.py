"""Collectives whose routing is given by values: `pbroadcast` and `ragged_all_to_all`."""

from __future__ import annotations

import operator
from typing import Any, TypeVar

import numpy as np

from plugrt.array_api.manipulation import expand_dims
from plugrt.array_api.searching import where
from plugrt.errors import ArgumentError, DtypeError, ShapeError
from plugrt.execution.arrays.array import Array
from plugrt.execution.trees import pytrees
from plugrt.interface import TensorType
from plugrt.lax.control_flow.counted_loop import emit_loop
from plugrt.lax.parallel.all_reduce import axis_size
from plugrt.lax.parallel.exchanges import all_gather, all_to_all
from plugrt.lax.parallel.replica_calls import collective
from plugrt.lax.parallel.replica_groups import AxisName, Groups, group_size
from plugrt.lax.slicing import dynamic_index_in_dim
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import iota
from plugrt.tracing.tracer import Tracer

T = TypeVar("T")


@collective
def pbroadcast(x: T, axis_name: AxisName, source: int) -> T:
    """Returns the ``x`` of index ``source`` on every device along the axis.

    Any shape and dtype, which stay, bit by bit. Raises `UnboundAxis`, and `ArgumentError` for an
    index out of range. As ``jax.lax.pbroadcast``, which does not work on CPU; plugrt uses a gather.

    >>> second = plugrt.pmap(lambda v: lax.pbroadcast(v, "i", 1), "i")
    >>> second(xp.asarray([1.0, 2.0]))
    Array([2., 2.], dtype=float32)
    """
    size = axis_size(axis_name)
    index = operator.index(source)
    if not 0 <= index < size:
        raise ArgumentError(
            f"pbroadcast over axis {axis_name!r} of size {size} has a source from 0 to {size - 1}; "
            f"got {index}"
        )
    result: T = pytrees.map(lambda v: v[index], all_gather(x, axis_name))
    return result


@collective
def ragged_all_to_all(
    operand: Array,
    output: Array,
    input_offsets: Array,
    send_sizes: Array,
    output_offsets: Array,
    recv_sizes: Array,
    *,
    axis_name: AxisName,
    axis_index_groups: Groups = None,
) -> Array:
    """Returns ``output`` with the slices, of any lengths, that all devices send to this one.

    The last four are integer vectors of one length, a multiple of the axis's: entry i describes a
    slice to or from device ``i // (length // size)``. ``send_sizes[i]`` rows of ``operand`` from
    ``input_offsets[i]`` on are written at ``output_offsets[i]`` of the receiver, whose
    ``recv_sizes`` has their number. Rows beyond the end are left out.

    Raises `UnboundAxis`, `ShapeError` for shapes that do not fit, and `DtypeError` for dtypes. As
    ``jax.lax.ragged_all_to_all``, which does not work on CPU; plugrt gathers whole operands.
    """
    size = group_size(axis_name, axis_index_groups)
    data, into = (as_tracer(v, f"an argument of {_TITLE}") for v in (operand, output))
    vectors = [
        as_tracer(v, f"{name} of {_TITLE}")
        for name, v in zip(
            _VECTORS, (input_offsets, send_sizes, output_offsets, recv_sizes), strict=True
        )
    ]
    _check_ragged(data, into, vectors, size)
    starts, places = (
        all_to_all(v, axis_name, 0, 0, axis_index_groups=axis_index_groups, tiled=True)
        for v in (vectors[0], vectors[2])
    )
    sizes, count = vectors[3], vectors[0].shape[0]
    sent = all_gather(data, axis_name, axis_index_groups=axis_index_groups)
    rows = iota(into.shape[:1], 0, np.dtype(np.int32))

    def receive(i: Any, so_far: Any) -> Any:
        start, place, length = (
            dynamic_index_in_dim(v, i, 0, False).astype(np.int32) for v in (starts, places, sizes)
        )
        taken = dynamic_index_in_dim(sent, i // (count // size), 0, False)
        from_row = rows - place + start
        here = (rows >= place) & (rows < place + length) & (from_row < data.shape[0])
        here = expand_dims(here, axis=tuple(range(1, into.ndim)))
        return where(here, taken.at[from_row].get(mode="clip"), so_far)

    made: Any = into
    if data.size:
        step = lambda i, so_far, _: (receive(i, so_far), None)  # noqa: E731
        made, _ = emit_loop(_TITLE, step, into, None, count, widens=True)
    result: Array = made  # every traced array counts as one
    return result


_TITLE = "ragged_all_to_all"
_VECTORS = ("input_offsets", "send_sizes", "output_offsets", "recv_sizes")


def _check_ragged(data: Tracer, into: Tracer, vectors: list[Tracer], size: int) -> None:
    types = [TensorType(v.shape, v.dtype) for v in (data, into)]
    if data.dtype != into.dtype:
        raise DtypeError(f"operand and output of {_TITLE} have one dtype; got {types}")
    if data.ndim < 1 or data.shape[1:] != into.shape[1:]:
        raise ShapeError(
            f"operand and output of {_TITLE} differ in the number of rows alone; they are "
            f"{types[0]} and {types[1]}"
        )
    for name, v in zip(_VECTORS, vectors, strict=True):
        if v.dtype.kind not in "iu":
            raise DtypeError(f"{name} of {_TITLE} holds integers; it is {v.dtype.name}")
        if v.ndim != 1 or v.shape != vectors[0].shape or v.shape[0] % size:
            raise ShapeError(
                f"{', '.join(_VECTORS)} of {_TITLE} are vectors of one length, a multiple of the "
                f"size {size} of the mapped axis; {name} has the shape {v.shape}"
            )
