"""`live_arrays`: the arrays of this process that are not deleted; `drop_views`, for the exit."""

from __future__ import annotations

import gc

from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.array_deletion import Deletion
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.native.finalizers import finish_pending
from plugrt.plugins.selection.backends import get_backend


@with_argument_errors
def live_arrays(platform: str | None = None) -> list[Array]:
    """Returns the arrays on a backend (all, without a name) that are alive and not deleted.

    As ``jax.live_arrays``, whose default is one backend. It searches the objects of Python's
    garbage collector, in time proportional to their number, and costs calls nothing; it does not
    find objects that `gc.freeze` has set aside. Raises as `plugrt.get_backend`.

    >>> x = xp.ones(3)
    >>> any(y is x for y in plugrt.live_arrays())
    True
    """
    finish_pending()
    client = None if platform is None else get_backend(platform)
    found = [x for x in gc.get_objects() if type(x) is Array]
    return [
        x
        for x in found
        if not x.is_deleted() and (client is None or x.sharding.devices[0].client is client)
    ]


def drop_views() -> None:
    """Drops the host copies that arrays keep; most are views of their buffers.

    The program's own views of the same memory stay valid. Excludes views that the compiled core
    makes.
    """
    arrays = [thing for thing in gc.get_objects() if type(thing) is Array]
    for array in arrays:
        if not isinstance(array._extra, Deletion):
            array._extra = None
