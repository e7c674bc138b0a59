"""Makes arrays of existing buffers: of one, of parts on several devices, or another array's."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plugrt.errors import DeletedBuffer, Unimplemented
from plugrt.execution.arrays import sharers
from plugrt.execution.arrays.array import Array, array_holding, new_array
from plugrt.execution.arrays.aval import ArrayAval, intern_aval
from plugrt.execution.arrays.sharers import keep_sharer, tie_copy, tie_whole
from plugrt.execution.compilation.buffer_copy import relayout
from plugrt.execution.shardings.sharding_base import Sharding, SingleDeviceSharding
from plugrt.execution.trees import pytrees
from plugrt.interface import Buffer, Layout, Shards


def share_buffers(array: Array, aval: ArrayAval) -> Array:
    """Returns another array of the same buffers: deleting or donating one keeps the other.

    The memory is freed with the last of them.

    Raises:
        DeletedBuffer: the array was deleted or donated, perhaps meanwhile by another thread.
    """
    with sharers.lock:
        held = array._held()
        made = array_holding(held, aval)
        keep_sharer(array, made)
    _require_held(array, held)
    return made


def through_words(keys: Array, sharding: Sharding, put: Callable[[Array], Array]) -> Array:
    """Applies ``put`` to the words of random keys; returns the keys, with ``sharding``."""
    words = put(share_buffers(keys, keys._aval.of_words))  # type: ignore[attr-defined]
    return keys_over(words, keys.dtype, sharding)


def keys_over(words: Array, dtype: Any, sharding: Sharding) -> Array:
    """Returns the array of random keys over the buffers of their words."""
    aval = intern_aval(words.shape[:-1], dtype, sharding, words.committed)
    return share_buffers(words, aval)


def with_own_arrays(tree: Any) -> Any:
    """Returns a pytree of new arrays with the same buffers; assigning to one changes no other."""
    return pytrees.map(lambda x: share_buffers(x, x._aval) if type(x) is Array else x, tree)


def snapshot(array: Array) -> Array:
    """Returns another array of the same buffers, which keeps them when ``array`` is assigned to.

    Before that, deleting or donating one also deletes the other.

    Raises:
        DeletedBuffer: the array was deleted or donated, perhaps meanwhile by another thread.
    """
    with sharers.lock:
        held = array._held()
        made = array_holding(held, array._aval)
        tie_copy(array, made)
    _require_held(array, held)
    return made


def share_parts(made: Array, array: Array, held: object) -> Array:
    """Returns ``made``, which shares some of the buffers that ``array`` had.

    ``held`` are these buffers. Deleting or donating one array keeps the other, as with
    `share_buffers`; all of an array is kept, or copied, even if only a part is shared.

    Raises:
        DeletedBuffer: the array was deleted or donated meanwhile, perhaps by another thread.
    """
    with sharers.lock:
        keep_sharer(array, made)
    _require_held(array, held)
    return made


def join_parts(made: Array, parts: Sequence[Array], held: Sequence[object]) -> Array:
    """Returns ``made`` over the buffers ``held`` of ``parts``; deleting a part deletes it.

    Raises:
        DeletedBuffer: one of them was deleted or donated meanwhile, perhaps by another thread.
    """
    with sharers.lock:
        tie_whole(made, parts)
    for part, had in zip(parts, held, strict=True):
        _require_held(part, had)
    return made


def _require_held(array: Array, held: object) -> None:
    # The compiled core has no lock: it donates the buffers of arrays without weak references.
    if array._shards is not held and array._settled() is None:
        raise DeletedBuffer(array._deleted_message())


def array_on(buffer: Buffer, committed: bool, weak: bool = False) -> Array:
    """Returns the array of one buffer, in the default layout, on its device."""
    device, memory_kind = buffer.device, None
    with contextlib.suppress(Unimplemented):  # a backend that names no memories
        memory = buffer.memory
        memory_kind = None if memory is device.default_memory() else memory.kind
    sharding = SingleDeviceSharding(device, memory_kind=memory_kind)
    aval = intern_aval(buffer.shape, buffer.dtype, sharding, committed, weak)
    return new_array(device.client.shards((buffer,)), aval)


def array_of_shards(
    shape: Sequence[int],
    dtype: np.dtype[np.generic],
    sharding: Sharding,
    buffers: Shards,
    weak: bool = False,
    layout: Layout | None = None,
) -> Array:
    """Returns the committed array whose parts are ``buffers``, in the order of the sharding.

    Each part has the layout ``layout``, None for the default.
    """
    return new_array(buffers, intern_aval(tuple(shape), dtype, sharding, True, weak, layout))


def change_layout(x: Array, layout: Layout | None) -> Array:
    """Returns ``x`` with each part in a layout; ``x`` itself if the parts have it.

    ``layout`` None is the default.
    """
    old = x._aval
    if old.layout == layout or (layout and old.layout and layout.is_met_by(old.layout)):
        return x
    shards: Shards = ()
    if buffers := relayout(x._live(), old.layout, layout):  # else all parts are in other processes
        shards = buffers[0].device.client.shards(buffers)
        layout = layout and buffers[0].layout
    aval = intern_aval(old.shape, old.dtype, old.sharding, old.committed, old.weak, layout)
    return new_array(shards, aval)
