"""`drop_views`: ends what arrays lend of their clients' memory, when the interpreter ends."""

from __future__ import annotations

import gc

import numpy as np

from plugrt.execution.array import Array


def drop_views() -> None:
    """Drops the contents that arrays keep on the host: views of their buffers, most often.

    Views that the program has of the same memory stay valid.
    """
    arrays = [thing for thing in gc.get_objects() if type(thing) is Array]
    for array in arrays:
        if isinstance(array._extra, np.ndarray):
            array._extra = None
