"""Makes arrays of parts: from a callback, arrays on each device, or each process's data."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from plugrt.errors import ArgumentError, ArgumentTypeError, DtypeError, NotAnArray, ShapeError
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.array_making import array_of_shards, join_parts, keys_over
from plugrt.execution.arrays.aval import is_of_keys
from plugrt.execution.arrays.host_data import host_array
from plugrt.execution.executables.agreements import agree_on_parts
from plugrt.execution.placement.put_target import read_format, require_concrete
from plugrt.execution.placement.specs_in_context import name_in_context
from plugrt.execution.shardings.format import Format
from plugrt.execution.shardings.gspmd_sharding import buffer_sharding
from plugrt.execution.shardings.index_boxes import Box, box_shape, device_boxes, relative_box
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.shardings.sharding_base import Index, Sharding, SingleDeviceSharding
from plugrt.execution.transfers.sharded_transfer import put_parts
from plugrt.execution.trees import pytrees
from plugrt.execution.trees.tree_prefixes import spread_prefix
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Buffer, Device, Layout
from plugrt.native.known_dtypes import buffer_type, is_key_dtype


@with_argument_errors
def make_array_from_callback(
    shape: Sequence[int],
    sharding: Sharding | Format,
    data_callback: Callable[[Index], npt.ArrayLike],
    dtype: npt.DTypeLike | None = None,
) -> Array:
    """Returns an array whose parts in this process come from a function.

    ``data_callback`` is called with the position of a part, as an index of the whole array, and
    returns host data or an array of that part's shape. It is called once for each part, however
    many devices have it. ``dtype`` is the array's dtype, by default the first part's; it is
    required if this process has no device of the sharding. ``sharding`` may be a
    `plugrt.layout.Format`, which has the layout of each part as well. As
    ``jax.make_array_from_callback``.

    Raises `ArgumentTypeError` for a Format without a sharding or with ``Layout.AUTO``, `ShapeError`
    if the sharding does not divide ``shape`` evenly or a part has another shape, and `DtypeError`
    if it has another dtype.

    >>> from plugrt.sharding import NamedSharding, PartitionSpec as P
    >>> rows = NamedSharding(plugrt.make_mesh((2,), ("x",)), P("x"))
    >>> host = np.arange(6, dtype=np.int32).reshape(2, 3)
    >>> plugrt.make_array_from_callback((2, 3), rows, lambda index: host[index])
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    sharding, layout = _read_layout(sharding, "make_array_from_callback")
    whole = tuple(map(operator.index, shape))
    where = sharding.addressable_devices_indices_map(whole)
    expected = sharding.shard_shape(whole)
    wanted = _read_dtype(dtype)
    found: dict[Box, npt.NDArray[np.generic]] = {}
    boxes = device_boxes(sharding, whole)
    for device, box in boxes.items():
        if box not in found:
            data = data_callback(where[device])
            of_keys = type(data) is Array and is_of_keys(data._aval)
            part: Any = data if of_keys else host_array(data)
            wanted = wanted or part.dtype
            what = f"data_callback returned for {where[device]}"
            _check_part(part, expected, wanted, what)
            found[box] = np.asarray(part._words()) if of_keys else part
    if wanted is None:
        raise ArgumentError(
            f"{sharding!r} has no device of this process, so that no part has the dtype; give it"
        )
    parts = [found[box] for box in boxes.values()]
    if is_key_dtype(wanted):
        shape, _ = buffer_type(whole, wanted)
        where_words, _ = buffer_sharding(sharding, whole, wanted)
        words = _put_parts(shape, np.dtype(np.uint32), where_words, layout, parts)
        return keys_over(words, wanted, sharding)
    return _put_parts(whole, wanted, sharding, layout, parts)


@with_argument_errors
def make_array_from_single_device_arrays(
    shape: Sequence[int],
    sharding: Sharding,
    arrays: Sequence[Array],
    *,
    dtype: npt.DTypeLike | None = None,
) -> Array:
    """Returns the array whose parts are arrays on one device each, without a copy.

    ``arrays`` has one for each device of ``sharding`` in this process, in any order. ``dtype`` is
    required only if there is none. The parts and the result share their memory: deleting or
    donating a part deletes the result, too, and deleting the result deletes all parts; results of
    programs on either stay valid. As ``jax.make_array_from_single_device_arrays``.

    Raises `ShapeError` and `DtypeError` for parts of another type, `NotAnArray` for any other
    object, and `ArgumentError` if they are not on the devices of the sharding or have several
    layouts.

    >>> from plugrt.sharding import NamedSharding, PartitionSpec as P
    >>> rows = NamedSharding(plugrt.make_mesh((2,), ("x",)), P("x"))
    >>> parts = [plugrt.device_put(np.float32([i, i]), d) for i, d in enumerate(rows.devices)]
    >>> plugrt.make_array_from_single_device_arrays((4,), rows, parts)
    Array([0., 0., 1., 1.], dtype=float32)
    """
    _require_sharding(sharding)
    whole = _read_shape(shape, sharding)
    expected = sharding.shard_shape(whole)
    buffers: dict[Device, Buffer] = {}
    numbers: dict[Device, int] = {}
    held: list[object] = []
    wanted = _read_dtype(dtype)
    for i, x in enumerate(arrays):
        if type(x) is not Array:
            raise NotAnArray(f"arrays[{i}] is not on a device: {x!r:.80}; device_put it first")
        if x.sharding.num_devices != 1:
            raise ArgumentError(f"arrays[{i}] is on several devices: {x.sharding!r}")
        wanted = wanted or x.dtype
        _check_part(x, expected, wanted, f"arrays[{i}] is")
        if x._aval.layout != arrays[0]._aval.layout:
            raise ArgumentError(
                f"arrays[{i}] has {x.format.layout}, arrays[0] {arrays[0].format.layout}: parts of "
                "an array have one layout. device_put them in the same before"
            )
        held.append(x._held())
        [buffer] = x._open_shards(held[-1])
        if buffer.device in buffers:
            raise ArgumentError(f"arrays[{i}] is the second on {buffer.device!r}")
        buffers[buffer.device] = buffer
        numbers[buffer.device] = i
    devices = sharding.addressable_devices
    if set(buffers) != set(devices):
        raise ArgumentError(
            f"the arrays are on {sorted(map(repr, buffers))}; {sharding!r} has, in this process, "
            f"{sorted(map(repr, devices))}"
        )
    if wanted is None:
        raise ArgumentError(f"{sharding!r} has no device of this process; give the dtype")
    shards = devices[0].client.shards([buffers[device] for device in devices]) if devices else ()
    order = [numbers[device] for device in devices]
    layout = arrays[0]._aval.layout if order else None
    made = array_of_shards(whole, wanted, sharding, shards, layout=layout)
    return join_parts(made, [arrays[i] for i in order], [held[i] for i in order])


@overload
def make_array_from_process_local_data(
    sharding: Sharding | Format | Device | PartitionSpec,
    local_data: npt.ArrayLike,
    global_shape: Sequence[int] | None = None,
) -> Array: ...
@overload
def make_array_from_process_local_data(
    sharding: Any, local_data: Any, global_shape: Any = None
) -> Any: ...
@with_argument_errors
def make_array_from_process_local_data(
    sharding: Any, local_data: Any, global_shape: Any = None
) -> Any:
    """Returns a global array from ``local_data``, this process's part of it.

    ``global_shape`` is the shape of the whole array; by default, each dimension is multiplied by
    the number of processes that divide it, and the processes compare their results, which JAX does
    not do. ``local_data`` may also be the whole array, from which this process's parts are cut. It
    may be a pytree, and ``sharding`` and ``global_shape`` pytree prefixes of it, in which a tuple
    is one shape. A sharding may be a device, or a `PartitionSpec` over the mesh in the context. A
    `plugrt.layout.Format` in place of a sharding has the layout of each part as well. As
    ``jax.make_array_from_process_local_data``. Raises `ShapeError` for data of any other shape,
    `StructureError` for a tree that is no prefix, and `DistributedError` in all processes if they
    find different shapes.

    >>> from plugrt.sharding import NamedSharding, PartitionSpec as P
    >>> rows = NamedSharding(plugrt.make_mesh((2,), ("x",)), P("x"))
    >>> plugrt.make_array_from_process_local_data(rows, np.float32([1, 2, 3, 4]))
    Array([1., 2., 3., 4.], dtype=float32)
    """
    leaves, structure = pytrees.flatten(local_data)
    if pytrees.is_leaf_spec(structure):
        return _make_from_local_data(sharding, local_data, global_shape)
    shardings = spread_prefix(sharding, local_data, "sharding", "local_data")
    shapes = spread_prefix(global_shape, local_data, "global_shape", "local_data", _is_shape)
    made = map(_make_from_local_data, shardings, leaves, shapes)
    return pytrees.unflatten(structure, made)


def _is_shape(x: object) -> bool:
    return x is None or isinstance(x, tuple)


def _make_from_local_data(
    where: Sharding | Format | Device | PartitionSpec,
    local_data: npt.ArrayLike,
    global_shape: Sequence[int] | None,
) -> Array:
    what = "make_array_from_process_local_data"
    if isinstance(where, Device):
        where = SingleDeviceSharding(where)
    sharding, layout = _read_layout(name_in_context(where, what), what)
    host = host_array(local_data)
    if global_shape is None:
        whole = _infer_shape(sharding, host.shape)
        agree_on_parts(host.shape, whole, host.dtype, sharding)
    else:
        whole = _read_shape(global_shape, sharding)
    boxes = device_boxes(sharding, whole)
    if not boxes:
        raise ArgumentError(f"{sharding!r} has no device of this process")
    span = _span([*boxes.values()])
    if host.shape not in (whole, box_shape(span)):
        raise ShapeError(
            f"the devices of this process have {box_shape(span)} of the shape {whole}; local_data "
            f"has the shape {host.shape}"
        )
    held = span if host.shape != whole else tuple((0, size) for size in whole)
    parts = [host[tuple(slice(*r) for r in relative_box(box, held))] for box in boxes.values()]
    expected = sharding.shard_shape(whole)
    parts = [part.reshape(expected) for part in parts]
    return _put_parts(whole, host.dtype, sharding, layout, parts)


def _span(boxes: Sequence[Box]) -> Box:
    """Returns the smallest box that contains all boxes."""
    ranges = [zip(*along, strict=True) for along in zip(*boxes, strict=True)]
    return tuple((min(starts), max(stops)) for starts, stops in ranges)


def _infer_shape(sharding: Sharding, local: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape of the array whose part in this process has the shape ``local``."""
    tiling = sharding.tiling(len(local))
    if tiling is None:
        raise ArgumentError(f"give the global_shape: {sharding!r} does not say it")
    mine = [i for i, device in enumerate(sharding.devices) if device.is_addressable]
    if not mine:
        raise ArgumentError(f"{sharding!r} has no device of this process")
    coordinates = tiling.coordinates()
    held = [len(set(along)) for along in zip(*(coordinates[i] for i in mine), strict=True)]
    for dimension, (size, parts) in enumerate(zip(local, held, strict=True)):
        if size % parts:
            raise ShapeError(
                f"dimension {dimension} of local_data has size {size}, and the devices of this "
                f"process divide it into {parts} equal parts"
            )
    return tuple(
        size // mine_of * parts
        for size, mine_of, parts in zip(local, held, tiling.parts, strict=True)
    )


def _read_layout(where: Sharding | Format, what: str) -> tuple[Sharding, Layout | None]:
    if isinstance(where, Format):
        return require_concrete(where, what)
    _require_sharding(where)
    return where, None


def _require_sharding(sharding: object) -> None:
    if not isinstance(sharding, Sharding):
        raise ArgumentTypeError(
            f"sharding is {sharding!r:.100}; it takes a sharding of plugrt.sharding"
        )


def _read_shape(shape: Sequence[int], sharding: Sharding) -> tuple[int, ...]:
    whole = tuple(map(operator.index, shape))
    sharding.check_shape(whole)
    return whole


def _read_dtype(dtype: npt.DTypeLike | None) -> Any:
    return dtype if dtype is None or is_key_dtype(dtype) else np.dtype(dtype)


def _check_part(
    part: Any, expected: tuple[int, ...], dtype: np.dtype[np.generic], what: str
) -> None:
    if part.shape != expected:
        raise ShapeError(f"{what} of the shape {part.shape}; each part has the shape {expected}")
    if part.dtype != dtype:
        raise DtypeError(f"{what} of the dtype {part.dtype}; the array's is {dtype}")


def _put_parts(
    shape: tuple[int, ...],
    dtype: np.dtype[np.generic],
    sharding: Sharding,
    layout: Layout | None,
    parts: Sequence[npt.NDArray[np.generic]],
) -> Array:
    if layout is not None:
        _, layout = read_format(Format(layout, sharding), shape, dtype, "the format")
    if not parts:
        return array_of_shards(shape, dtype, sharding, (), layout=layout)
    return put_parts(shape, sharding, sharding.addressable_devices, parts, layout=layout)
