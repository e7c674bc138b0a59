"""`broadcast_one_to_all`: what one process has, in all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt.errors import DistributedError
from plugrt.execution.transfers.process_allgather import (
    is_everywhere,
    read_everywhere,
    read_here,
    stack_processes,
)
from plugrt.execution.trees import tree
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.plugins.selection import backends


@with_argument_errors
def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """Returns the data of one process as NumPy arrays, in each; all of them must call it.

    ``in_tree`` is a pytree of host data, of arrays of this process, or of arrays with parts in
    several, which are returned whole; the others have the same shapes and dtypes in all processes.
    ``is_source`` is whether this process is the one; by default it is process 0. As
    ``jax.experimental.multihost_utils.broadcast_one_to_all``, which adds up the data of several
    sources. Each process gathers the data of all, for which it needs the room. Raises
    `DistributedError` where other than one process is the source, or one calls it with something
    of another shape or dtype; `NotAnArray` for what is no array.

    >>> plugrt.broadcast_one_to_all({"seed": 7})
    {'seed': array(7, dtype=int32)}
    """
    count = backends.process_count()
    own = backends.process_index() == 0 if is_source is None else bool(is_source)
    sources = np.flatnonzero(stack_processes(np.asarray(own))).tolist()
    if len(sources) != 1:
        raise DistributedError(
            "broadcast_one_to_all takes the data of one process; is_source is true in "
            f"{sources or 'none'} of {count}"
        )

    def broadcast(leaf: Any) -> Any:
        return read_everywhere(leaf) if is_everywhere(leaf) else _pick(leaf, sources[0])

    return tree.map(broadcast, in_tree)


def _pick(leaf: Any, source: int) -> Any:
    return np.asarray(stack_processes(read_here(leaf))[source])
