"""Random keys for ``x[key]``: every kind of element, including invalid ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

_BLOCKS: list[tuple[int, ...]] = [(), (1,), (2,), (3, 1), (3, 2), (1, 1)]


def _slices(size: int) -> st.SearchStrategy[slice]:
    bound = st.none() | st.integers(-size - 2, size + 2)
    step = st.none() | st.sampled_from([-3, -2, -1, 1, 2, 3])
    return st.builds(slice, bound, bound, step)


@st.composite
def _arrays(draw: st.DrawFn, size: int) -> Any:
    shape = draw(st.sampled_from(_BLOCKS))
    if not size:
        return np.zeros(0, np.int32)
    count = int(np.prod(shape))
    values = draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count))
    dtype = draw(st.sampled_from([np.int8, np.int32, np.int64]))
    return np.asarray(values, dtype).reshape(shape)


@st.composite
def _masks(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    count = int(np.prod(shape))
    values = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return np.asarray(values, np.bool_).reshape(shape)


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Draws a key for an array of that shape; its arrays may fail to broadcast."""
    parts: list[Any] = []
    axis, seen_ellipsis = 0, False
    while len(parts) < 5 and draw(st.integers(0, 5)):
        choices = ["new"] + ([] if seen_ellipsis else ["ellipsis"])
        if axis < len(shape):
            choices += ["slice", "array", "mask"] + (["int"] if shape[axis] else [])
            choices += ["mask2"] if axis + 1 < len(shape) else []
        kind = draw(st.sampled_from(choices))
        if kind == "new":
            parts.append(None)
        elif kind == "ellipsis":
            parts.append(Ellipsis)
            seen_ellipsis = True
            # Later elements count from the back; leave at least room for them.
            axis += draw(st.integers(0, len(shape) - axis))
        else:
            size = shape[axis]
            part = {
                "slice": _slices(size),
                "int": st.integers(-size, max(size - 1, -size)),
                "array": _arrays(size),
                "mask": _masks(shape[axis : axis + 1]),
                "mask2": _masks(shape[axis : axis + 2]),
            }[kind]
            parts.append(draw(part))
            axis += 2 if kind == "mask2" else 1
    return tuple(parts)
