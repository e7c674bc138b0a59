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

    As ``jax.live_arrays``, but for the backend's default: JAX's is one. It asks Python's garbage
    collector, in time proportional to all objects, and costs calls nothing; what `gc.freeze` has
    set aside is not found. Raises as `plugrt.get_backend`.

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
    """Drops the contents that arrays keep on the host: views of their buffers, most often.

    Views that the program has of the same memory stay valid. Does not cover memory that the
    compiled core lends.
    """
    arrays = [thing for thing in gc.get_objects() if type(thing) is Array]
    for array in arrays:
        if not isinstance(array._extra, Deletion):
            array._extra = None
