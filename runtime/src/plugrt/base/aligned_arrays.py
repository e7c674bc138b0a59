"""Makes host arrays that a backend in host memory can use without a copy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from plugrt.errors import ResourceExhausted

if TYPE_CHECKING:
    import numpy.typing as npt

ALIGNMENT = 64
"""The alignment, in bytes, that XLA's CPU client requires of memory that it uses without a copy."""

LARGE_BYTES = 1 << 24
"""Above this size a put copies to new NumPy memory, which the backend then uses without a copy.

Memory of that size comes from the system page by page. NumPy requests huge pages, so few are
needed; XLA's allocator requests small ones, and getting those costs more than the copy itself (64
MB on Linux: 55 ms of CPU time against 13). Below this size both reuse memory and cost the same.
"""


def allocate_aligned(
    shape: tuple[int, ...], dtype: np.dtype[np.generic]
) -> npt.NDArray[np.generic]:
    """Returns a new C-contiguous array, of undefined contents, aligned to 64 bytes.

    Raises `ResourceExhausted` if the memory cannot be allocated.
    """
    nbytes = math.prod(shape) * dtype.itemsize
    try:
        memory = np.empty(nbytes + ALIGNMENT, np.uint8)
    except MemoryError:
        raise ResourceExhausted(
            f"the {nbytes} bytes of {dtype.name}{[*shape]} do not fit the host's memory"
        ) from None
    start = -memory.__array_interface__["data"][0] % ALIGNMENT
    host: npt.NDArray[np.generic] = memory[start : start + nbytes].view(dtype).reshape(shape)
    return host


def copy_aligned(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Returns a copy in new memory of `allocate_aligned`."""
    copy = allocate_aligned(array.shape, array.dtype)
    copy[...] = array
    return copy
