"""Views host memory in capsules as NumPy arrays, and exports arrays, of all dtypes.

NumPy has no bfloat16 in its DLPack support.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import numpy.typing as npt

from plugrt.base.dlpack_types import CPU, ON_HOST
from plugrt.capi.abi._abi import ffi
from plugrt.capi.buffers import dlpack
from plugrt.capi.loading.owned_handles import own
from plugrt.errors import InvalidArgument


def view_capsule(capsule: object) -> npt.NDArray[np.generic]:
    """Returns a view of the host memory of an unused capsule, and keeps the capsule alive.

    The capsule stays unused, so its destructor releases the memory in every case.
    """
    found = dlpack.read(capsule)
    if found.device_type not in ON_HOST:
        raise InvalidArgument(
            f"the capsule's memory (DLPack device {(found.device_type, found.device_id)}) is not "
            "the host's"
        )
    return host_array(found.address, found.shape, found.strides, found.dtype, capsule)


def export_array(array: npt.NDArray[np.generic]) -> object:
    """Returns a capsule of a NumPy array in C order, which it keeps alive."""
    return dlpack.export(array.ctypes.data, array.shape, array.dtype, (CPU, 0), array)


def host_array(
    address: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    dtype: np.dtype[np.generic],
    owner: object = None,
) -> npt.NDArray[np.generic]:
    """Returns a view of host memory; ``strides`` are in elements, None means C order.

    It keeps ``owner`` alive, and so do its views.
    """
    if strides is None:
        strides = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
    steps = [stride * (size - 1) for size, stride in zip(shape, strides, strict=True)]
    first = sum(step for step in steps if step < 0) * dtype.itemsize
    last = sum(step for step in steps if step > 0) * dtype.itemsize + dtype.itemsize
    if 0 in shape:
        return np.empty(shape, dtype)
    begin = ffi.cast("char*", address + first)
    if owner is not None:
        begin = own(begin, partial(_keep, owner))
    memory = ffi.buffer(begin, last - first)
    in_bytes = tuple(stride * dtype.itemsize for stride in strides)
    return np.ndarray(shape, dtype, memory, -first, in_bytes)


def _keep(_owner: object, _begin: object) -> None:
    """Does nothing: `own` keeps its arguments, and so the owner, as long as the pointer."""
