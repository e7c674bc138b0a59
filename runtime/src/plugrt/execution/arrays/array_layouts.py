"""`change_layout`: an array in another layout."""

from __future__ import annotations

from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.array_making import array_on
from plugrt.execution.compilation.relayout import relayout
from plugrt.interface import Layout


def change_layout(x: Array, layout: Layout | None) -> Array:
    """Returns ``x``, which is on one device, in a layout; itself if it lies so.

    ``layout`` is one other than the default, None the default.
    """
    old = x._signature
    if old.layout == layout or (layout and old.layout and layout.is_met_by(old.layout)):
        return x
    [buffer] = x._live()
    made = relayout(buffer, old.layout, layout)
    return array_on(made, old.committed, old.weak, made.layout if layout else None)
