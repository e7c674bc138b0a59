"""DLPack capsules: memory given to others, and what others give, without a copy."""

from __future__ import annotations

import ctypes
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.element_types import element_type_to_dtype
from plugrt.capi.callback_threads import keep_forever
from plugrt.compiled_core import core
from plugrt.errors import InvalidArgument, UnsupportedDtype

_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
_CODES = {"i": _INT, "u": _UINT, "f": _FLOAT, "c": _COMPLEX, "b": _BOOL}
_BFLOAT16 = 13
"""``PJRT_Buffer_Type_BF16``"""
_NAME, _USED = b"dltensor", b"used_dltensor"

_api = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", _api)
)
_get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", _api)
)
# The destructor's argument is about to die: as a c_void_p ctypes does not touch its count.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _api)
)
_get_dying = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)

_keys = itertools.count(1)
_exported: dict[int, tuple[Any, ...]] = {}


def get_type_code(dtype: np.dtype[Any]) -> int:
    """Returns the ``DLDataTypeCode`` of a dtype; `UnsupportedDtype` where there is none."""
    if dtype.name == "bfloat16":
        return _BFLOAT
    if dtype.kind in _CODES and dtype.isbuiltin == 1:
        return _CODES[dtype.kind]
    raise UnsupportedDtype(f"DLPack has no type for {dtype}")


def _dtype(code: int, bits: int, lanes: int) -> np.dtype[Any]:
    if lanes == 1 and bits % 8 == 0:
        if code == _BFLOAT and bits == 16:
            return element_type_to_dtype(_BFLOAT16)
        letters = {value: letter for letter, value in _CODES.items()}
        if code in letters:
            return np.dtype(f"{letters[code]}{bits // 8}")
    raise UnsupportedDtype(f"the DLPack type of code {code}, {bits} bits, {lanes} lanes is unknown")


def export(
    address: int,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    device: tuple[int, int],
    reference: object,
) -> Any:
    """Returns a ``dltensor`` capsule of memory in C order that ``reference`` keeps alive.

    ``device`` is ``(device_type, device_id)``. `UnsupportedDtype` where DLPack lacks the dtype.
    """
    code = get_type_code(dtype)
    managed = ffi.new("DLManagedTensor*")
    tensor = managed.dl_tensor
    dims = ffi.new("int64_t[]", list(shape))
    tensor.data = ffi.cast("void*", address)
    tensor.device_type, tensor.device_id = device
    tensor.ndim, tensor.shape = len(shape), dims
    tensor.code, tensor.bits, tensor.lanes = code, dtype.itemsize * 8, 1
    key = next(_keys)
    managed.manager_ctx = ffi.cast("void*", key)
    managed.deleter = _release_exported
    _exported[key] = (managed, dims, reference)
    address = int(ffi.cast("uintptr_t", managed))
    return _new(address, _NAME, _destructor)


# Both may be called when the interpreter has emptied this module: their defaults are still there.
@keep_forever
@ffi.callback("void(*)(DLManagedTensor*)")  # type: ignore[untyped-decorator]
def _release_exported(
    managed: Any, _cast: Any = ffi.cast, _exported: dict[int, Any] = _exported
) -> None:
    _exported.pop(int(_cast("uintptr_t", managed.manager_ctx)), None)


@keep_forever
@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)  # type: ignore[untyped-decorator]
def _free_capsule(
    capsule: int,
    _name: bytes = _NAME,
    _cast: Any = ffi.cast,
    _is_valid: Any = _is_valid,
    _get_dying: Any = _get_dying,
) -> None:
    """Runs when a capsule is freed; an unused capsule still owns its tensor."""
    if _is_valid(capsule, _name):
        managed = _cast("DLManagedTensor*", _get_dying(capsule, _name))
        managed.deleter(managed)


# A consumer that refuses a capsule drops it while its error is under way, and Python that is called
# then finds that error and fails, which loses the error and the memory: the core's keeps both.
_destructor = (
    ctypes.cast(_free_capsule, ctypes.c_void_p) if core is None else core.capsule_destructor()
)


@dataclass(frozen=True, slots=True)
class Tensor:
    """What a ``dltensor`` capsule holds; ``strides`` are in elements, None where in C order."""

    managed: Any
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: np.dtype[Any]
    device_type: int
    device_id: int

    def release(self) -> None:
        """Releases the producer's memory."""
        if self.managed.deleter != ffi.NULL:
            self.managed.deleter(self.managed)

    @property
    def is_in_c_order(self) -> bool:
        """Whether the elements lie one after the other, the last dimension fastest."""
        if self.strides is None:
            return True
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size > 1 and stride != expected:
                return False
            expected *= size
        return True


def read(capsule: Any) -> Tensor:
    """Returns what an unused ``dltensor`` capsule holds, and leaves the capsule as it is."""
    try:
        address = _get(capsule, _NAME)
    except (ValueError, ctypes.ArgumentError) as error:
        raise InvalidArgument(f"not an unused dltensor capsule: {capsule!r}") from error
    managed = ffi.cast("DLManagedTensor*", address)
    tensor = managed.dl_tensor
    strides = None
    if tensor.strides != ffi.NULL and tensor.ndim:
        strides = tuple(ffi.unpack(tensor.strides, tensor.ndim))
    return Tensor(
        managed,
        int(ffi.cast("uintptr_t", tensor.data)) + tensor.byte_offset,
        tuple(ffi.unpack(tensor.shape, tensor.ndim)) if tensor.ndim else (),
        strides,
        _dtype(tensor.code, tensor.bits, tensor.lanes),
        tensor.device_type,
        tensor.device_id,
    )


def take(capsule: Any) -> None:
    """Marks a capsule as used: its `Tensor` must then be released."""
    _rename(capsule, _USED)
