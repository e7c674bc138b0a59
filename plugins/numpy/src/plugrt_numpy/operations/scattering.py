"""Writes of many values to positions of one array, some of which may be the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt_numpy.data_types import Array, wide_dtype


def at_places(ufunc: Any, out: Array, places: Array, values: Array) -> None:
    """Combines values into a flat array at positions, which may repeat but must be within it."""
    wide = wide_dtype(out.dtype)
    if wide == out.dtype:
        ufunc.at(out, places, values)
        return
    total = out.astype(wide)
    ufunc.at(total, places, values.astype(wide))
    out[...] = total.astype(out.dtype)


def scatter_by_passes(combine: Any, out: Array, places: Array, values: Array) -> None:
    """Like `at_places`, by any function: each pass uses distinct positions, in order."""
    for chosen in distinct_passes(places):
        where = places[chosen]
        out[where] = combine(out[where], values[chosen])


def distinct_passes(places: Array) -> list[Array]:
    """Divides the indices of an array such that the values in each part differ.

    Equal values are in different parts, in their order.
    """
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    begins = np.maximum.accumulate(np.where(first, np.arange(len(ordered)), 0))
    occurrence = np.arange(len(ordered)) - begins
    return [np.sort(order[occurrence == k]) for k in range(int(occurrence.max(initial=-1)) + 1)]
