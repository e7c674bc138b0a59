"""Arrays of a backend in a host's memory: in any order of dimensions, with strides, in part."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from plugrt.errors import InvalidArgument, Unimplemented
from plugrt_sdk.export.host_arrays import view, write

ARRAY = np.arange(24, dtype=np.int32).reshape(2, 3, 4)


def written(layout: Any, size: int = ARRAY.nbytes) -> np.ndarray[Any, Any]:
    memory: Any = bytearray(size)
    write(ARRAY, memory, layout)
    return np.frombuffer(memory, np.int32)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_dimensions_in_any_order(order: tuple[int, ...]) -> None:
    minor_to_major = tuple(reversed(order))
    expected = ARRAY.transpose(order).reshape(-1)
    np.testing.assert_array_equal(written(("tiled", minor_to_major, ())), expected)


def test_strides() -> None:
    memory: Any = bytearray(8 * ARRAY.nbytes)
    strides = (4, 8, 24)  # the first dimension is the fastest
    write(ARRAY, memory, ("strides", strides))
    found = view(memory, ARRAY.dtype, ARRAY.shape, strides)
    np.testing.assert_array_equal(found, ARRAY)
    np.testing.assert_array_equal(np.frombuffer(memory, np.int32)[:4], ARRAY[:, :2, 0].T.ravel())


@pytest.mark.parametrize(("offset", "count"), [(0, 24), (8, 3), (92, 1), (96, 0)])
def test_bytes_from_an_offset(offset: int, count: int) -> None:
    found = written(("raw", offset), 4 * count)
    np.testing.assert_array_equal(found, ARRAY.ravel()[offset // 4 :][:count])


@pytest.mark.parametrize(
    ("layout", "kind"),
    [
        (("tiled", (0, 1, 1), ()), InvalidArgument),
        (("tiled", (2, 1), ()), InvalidArgument),
        (("tiled", (0, 1, 2), ((8, 128),)), Unimplemented),
    ],
)
def test_other_layouts_are_refused(layout: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        written(layout)
