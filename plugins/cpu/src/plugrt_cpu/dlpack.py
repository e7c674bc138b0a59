"""Reads and writes DLPack capsules of dtypes that NumPy's and jaxlib's own functions refuse.

The layout is DLPack's public C ABI (``dlpack.h``): a ``DLManagedTensor`` begins with its
``DLTensor``, whose first field is the data pointer.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrt.errors import InvalidArgument, UnsupportedDtype
from plugrt.lifetime.uninterrupted_imports import import_native
from plugrt_cpu.types import BUFFER_PROTOCOL_DTYPES

if TYPE_CHECKING:
    import numpy.typing as npt

CPU = 1
"""``kDLCPU``."""
_KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


@cache
def _dtypes() -> dict[tuple[int, int], np.dtype[Any]]:
    """Returns the dtype of each of DLPack's pairs of type code and bits."""
    [ml_dtypes] = import_native("ml_dtypes")
    plain = {(_KINDS[dtype.kind], 8 * dtype.itemsize): dtype for dtype in BUFFER_PROTOCOL_DTYPES}
    return plain | {
        (code, 8 * np.dtype(dtype).itemsize): np.dtype(dtype)
        for code, dtype in (
            (4, ml_dtypes.bfloat16),
            (7, ml_dtypes.float8_e3m4),
            (8, ml_dtypes.float8_e4m3),
            (9, ml_dtypes.float8_e4m3b11fnuz),
            (10, ml_dtypes.float8_e4m3fn),
            (11, ml_dtypes.float8_e4m3fnuz),
            (12, ml_dtypes.float8_e5m2),
            (13, ml_dtypes.float8_e5m2fnuz),
            (14, ml_dtypes.float8_e8m0fnu),
        )
    }


@cache
def _codes() -> dict[np.dtype[Any], tuple[int, int]]:
    return {dtype: code for code, dtype in _dtypes().items()}


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Memory:
    """An object with NumPy's array interface that keeps a capsule and its array alive."""

    # Workaround for jaxlib-deleted-capsule: Python clears them in alphabetical order: the capsule
    # ends before its keeper. jaxlib 0.10.2 ends the process (SIGABRT) when an array that was
    # deleted is freed while a capsule of its own refers to it; no public report of it was found.
    __slots__ = ("__array_interface__", "_capsule", "_keeper")

    def __init__(self, interface: dict[str, Any], capsule: Any, keeper: Any) -> None:
        self.__array_interface__ = interface
        self._capsule = capsule
        self._keeper = keeper


def view(
    capsule: Any, keeper: Any, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> npt.NDArray[Any]:
    """Returns a read-only array over the capsule's row-major memory, which it keeps alive.

    For dtypes that NumPy's own ``from_dlpack`` refuses, such as bfloat16. ``keeper`` is released
    after the capsule.
    """
    if 0 in shape:
        empty = np.empty(shape, dtype)
        empty.flags.writeable = False
        return empty
    tensor = _DLTensor.from_address(_get_pointer(capsule, b"dltensor"))
    interface = _interface(tensor.data + tensor.byte_offset, shape, f"|V{dtype.itemsize}", True)
    return np.asarray(_Memory(interface, capsule, keeper)).view(dtype)


def export(array: npt.NDArray[Any]) -> Any:
    """Returns a ``dltensor`` capsule over the memory of a row-major array of `_dtypes`.

    NumPy makes it, because jaxlib 0.10 aborts the process when an array that it has exported is
    deleted. NumPy exports integers of the same size, and the true type is written into the capsule
    afterwards. Consumers must not write to the memory: unversioned DLPack has no read-only flag,
    and NumPy refuses to export a read-only array.
    """
    code, bits = _codes()[array.dtype]
    pointer: int = array.__array_interface__["data"][0]
    typestr = f"<u{array.itemsize}" if array.itemsize <= 8 else f"<c{array.itemsize}"
    interface = _interface(pointer, array.shape, typestr, False)
    capsule = np.asarray(_Memory(interface, array, None)).__dlpack__()
    tensor = _DLTensor.from_address(_get_pointer(capsule, b"dltensor"))
    tensor.code, tensor.bits = code, bits
    return capsule


def _interface(
    pointer: int, shape: tuple[int, ...], typestr: str, read_only: bool
) -> dict[str, Any]:
    return {"version": 3, "typestr": typestr, "shape": shape, "data": (pointer, read_only)}


class CapsuleHolder:
    """An object with the methods that ``numpy.from_dlpack`` calls, over one capsule."""

    __slots__ = ("_capsule",)

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (CPU, 0)


def describe(capsule: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Returns the shape and dtype of a ``dltensor`` capsule of CPU memory.

    Raises `InvalidArgument` for anything else, and for memory of another device.
    """
    try:
        tensor = _DLTensor.from_address(_get_pointer(capsule, b"dltensor"))
    except ValueError as error:
        raise InvalidArgument(
            f"not a DLPack capsule, or one that was consumed before: {error}"
        ) from error
    if tensor.device_type != CPU:
        raise InvalidArgument(
            f"the DLPack capsule is memory of device type {tensor.device_type}, not of a CPU"
        )
    dtype = _dtypes().get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        raise UnsupportedDtype(
            f"DLPack type (code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes) is "
            "unknown to the cpu plugin"
        )
    return tuple(tensor.shape[i] for i in range(tensor.ndim)), dtype
