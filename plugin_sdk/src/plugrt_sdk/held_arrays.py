"""`hold`: a read-only NumPy array that keeps an object until its last view is deleted."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.base.dlpack_types import CPU
from plugrt.capi.buffers import dlpack
from plugrt.capi.buffers.dlpack_host import host_array
from plugrt.errors import InvalidArgument


class _Memory:
    """An object with NumPy's array interface; arrays made of it keep it alive."""

    __slots__ = ("__array_interface__", "_array", "_kept")

    def __init__(self, array: npt.NDArray[Any], kept: object) -> None:
        # As bytes: the interface has no name for the dtypes of ml_dtypes.
        self.__array_interface__ = array.view(f"V{array.itemsize}").__array_interface__
        self._array = array
        self._kept = kept


def hold(array: npt.NDArray[Any], kept: object) -> npt.NDArray[Any]:
    """Returns a read-only array over the same memory, which keeps an object alive.

    Every array and memoryview that is made of it keeps the object, too.
    """
    held: npt.NDArray[Any] = np.asarray(_Memory(array, kept)).view(array.dtype)
    held.flags.writeable = False
    return held


def address_of(array: npt.NDArray[Any]) -> int:
    """Returns the address of an array's first element."""
    address: int = array.__array_interface__["data"][0]
    return address


def import_capsule(capsule: Any) -> npt.NDArray[Any]:
    """Consumes a ``dltensor`` capsule and returns a read-only array over its host memory.

    The producer's deleter runs when the array, and every view of it, is freed. Raises
    `InvalidArgument` for an object that is no unused capsule, and for memory of other devices.
    """
    tensor = dlpack.read(capsule)
    if tensor.device_type != CPU:
        raise InvalidArgument(
            f"the DLPack capsule is memory of device type {tensor.device_type}, not the host's"
        )
    array = host_array(tensor.address, tensor.shape, tensor.strides, tensor.dtype)
    return hold(array, dlpack.take(capsule))
