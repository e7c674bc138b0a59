"""`drop_views`: ends what arrays lend of their clients' memory, when the interpreter ends."""

from __future__ import annotations

import gc

from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.deletion import Deletion


def drop_views() -> None:
    """Drops the contents that arrays keep on the host: views of their buffers, most often.

    Views that the program has of the same memory stay valid. Of memory that the compiled core keeps
    lent an array tells nothing.
    """
    arrays = [thing for thing in gc.get_objects() if type(thing) is Array]
    for array in arrays:
        if not isinstance(array._extra, Deletion):
            array._extra = None
