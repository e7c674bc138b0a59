"""Elements of fewer than 8 bits as XLA's programs have them in memory: the first in the low bits.

NumPy has one in each byte. Their sizes, of 1, 2 or 4 bits, divide a byte.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.capi.abi.element_types import element_bits


def packed_size(count: int, dtype: np.dtype[Any]) -> int:
    """Returns the bytes of that many elements."""
    return -(-count * element_bits(dtype) // 8)


def unpack_elements(
    memory: npt.NDArray[np.uint8], dtype: np.dtype[Any], count: int
) -> npt.NDArray[Any]:
    """Returns the first ``count`` elements that are in these bytes, each in one of its own."""
    bits = element_bits(dtype)
    parts = memory[:, None] >> np.arange(0, 8, bits, dtype=np.uint8) & np.uint8((1 << bits) - 1)
    return parts.reshape(-1)[:count].view(dtype)


def pack_elements(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Returns the bytes of the elements of an array in C order."""
    bits = element_bits(array.dtype)
    values = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & np.uint8((1 << bits) - 1)
    padded = np.zeros(packed_size(values.size, array.dtype) * (8 // bits), np.uint8)
    padded[: values.size] = values
    shifted = padded.reshape(-1, 8 // bits) << np.arange(0, 8, bits, dtype=np.uint8)
    packed: npt.NDArray[np.uint8] = np.bitwise_or.reduce(shifted, axis=1)
    return packed
