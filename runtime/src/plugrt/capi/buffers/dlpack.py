"""DLPack capsules: exports memory and imports others' memory without a copy."""

from __future__ import annotations

import atexit
import ctypes
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.element_types import element_type_to_dtype
from plugrt.capi.library.callback_threads import c_callback
from plugrt.capi.loading.owned_handles import own
from plugrt.errors import InvalidArgument, UnsupportedDtype
from plugrt.lifetime.forks import keep_forever
from plugrt.native.native_core import core

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

_BFLOAT16 = 13
"""``PJRT_Buffer_Type_BF16``"""
_DTYPES: dict[tuple[int, int], np.dtype[np.generic]] = {
    (code, bits): np.dtype(f"{kind}{bits // 8}")
    for code, kind, sizes in (
        (0, "i", (8, 16, 32, 64)),
        (1, "u", (8, 16, 32, 64)),
        (2, "f", (16, 32, 64)),
        (5, "c", (64, 128)),
        (6, "b", (8,)),
    )
    for bits in sizes
} | {(4, 16): element_type_to_dtype(_BFLOAT16)}
"""``DLDataTypeCode`` and bits to dtype: a producer may state any, which NumPy may not know."""
_CODES = {dtype: code for (code, _), dtype in _DTYPES.items()}
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
_get_destructor = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(
    ("PyCapsule_GetDestructor", _api)
)
_set_destructor = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(
    ("PyCapsule_SetDestructor", _api)
)
# The destructor's argument is being freed: for a c_void_p, ctypes does not change its count.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _api)
)
_get_dying = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)

# Process-wide: numbers `_exported`.
_keys = itertools.count(1)
# Process-wide: a consumer in C has only a number, and frees the tensor at any time.
_exported: dict[int, tuple[object, ...]] = {}


def get_type_code(dtype: np.dtype[np.generic]) -> int:
    """Returns the ``DLDataTypeCode`` of a dtype; raises `UnsupportedDtype` if there is none."""
    code = _CODES.get(dtype)
    if code is None:
        raise UnsupportedDtype(f"DLPack has no type for {dtype}")
    return code


def _dtype(code: int, bits: int, lanes: int) -> np.dtype[np.generic]:
    dtype = _DTYPES.get((code, bits)) if lanes == 1 else None
    if dtype is None:
        raise UnsupportedDtype(
            f"the DLPack type of code {code}, {bits} bits, {lanes} lanes is unknown"
        )
    return dtype


def export(
    address: int,
    shape: tuple[int, ...],
    dtype: np.dtype[np.generic],
    device: tuple[int, int],
    reference: object,
) -> object:
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
    managed.deleter = _deleter
    _exported[key] = (managed, dims, reference)
    address = int(ffi.cast("uintptr_t", managed))
    return _new(address, _NAME, _destructor)


# Default arguments: both may be called after the interpreter has cleared this module's globals.
@c_callback("void(*)(DLManagedTensor*)")
def _release_exported(
    managed: CData, _cast: Any = ffi.cast, _exported: dict[int, Any] = _exported
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


def _disarm(_exported: dict[int, Any] = _exported) -> None:
    """Replaces the deleters of tensors that consumers still have by one that does nothing.

    A deleter written in Python calls the interpreter, which ends the process once the interpreter
    has ended. This has no effect on tensors that are exported while the interpreter ends; the
    core's deleter checks for that itself.
    """
    nothing = ctypes.cast(_api.Py_IsInitialized, ctypes.c_void_p).value
    for managed, _, _ in list(_exported.values()):
        managed.deleter = ffi.cast("void(*)(DLManagedTensor*)", nothing)


_deleter = _release_exported
if core is None:
    atexit.register(_disarm)
else:
    _address = core.tensor_deleter(int(ffi.cast("uintptr_t", _release_exported)))
    _deleter = ffi.cast("void(*)(DLManagedTensor*)", _address)

# A consumer that refuses a capsule drops it with its exception set. A destructor in Python then
# fails, and loses the exception and the memory; the core's loses neither.
_destructor = (
    ctypes.cast(_free_capsule, ctypes.c_void_p) if core is None else core.capsule_destructor()
)


@dataclass(frozen=True, slots=True)
class Tensor:
    """The contents of a ``dltensor`` capsule; ``strides`` are in elements, None for C order."""

    managed: CData
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: np.dtype[np.generic]
    device_type: int
    device_id: int

    @property
    def is_in_c_order(self) -> bool:
        """Whether the elements are contiguous, the last dimension fastest."""
        if self.strides is None:
            return True
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size > 1 and stride != expected:
                return False
            expected *= size
        return True


def _find(capsule: object) -> CData:
    try:
        return ffi.cast("DLManagedTensor*", _get(capsule, _NAME))
    except (ValueError, ctypes.ArgumentError) as error:
        raise InvalidArgument(f"not an unused dltensor capsule: {capsule!r}") from error


def find_address(capsule: object) -> int:
    """Returns the address of the elements, of any type, in an unused capsule."""
    return _address_of(_find(capsule).dl_tensor)


def _address_of(tensor: CData) -> int:
    return int(ffi.cast("uintptr_t", tensor.data)) + int(tensor.byte_offset)


def read(capsule: object) -> Tensor:
    """Reads an unused ``dltensor`` capsule, and leaves the capsule unused."""
    return read_managed(_find(capsule))


def read_managed(managed: CData) -> Tensor:
    """Returns the contents of a ``DLManagedTensor*``."""
    tensor = managed.dl_tensor
    strides = None
    if tensor.strides != ffi.NULL and tensor.ndim:
        strides = tuple(ffi.unpack(tensor.strides, tensor.ndim))
    return Tensor(
        managed,
        _address_of(tensor),
        tuple(ffi.unpack(tensor.shape, tensor.ndim)) if tensor.ndim else (),
        strides,
        _dtype(tensor.code, tensor.bits, tensor.lanes),
        tensor.device_type,
        tensor.device_id,
    )


class _Release:
    """Releases a tensor once, if ``is_due`` is set: before that, its capsule does."""

    __slots__ = ("_left", "is_due")

    def __init__(self, managed: object) -> None:
        self._left = iter((managed,))
        self.is_due = False

    def __call__(self, managed: CData) -> None:
        if self.is_due and managed.deleter != ffi.NULL:
            next(map(managed.deleter, self._left), None)  # in C: an interrupt comes before or after


class Taken:
    """A tensor whose capsule was taken: it is released once, by `release` or when this is freed."""

    __slots__ = ("_handle", "_release", "managed")

    def __init__(self, managed: CData, release: _Release) -> None:
        self.managed = managed
        self._release = release
        self._handle = own(managed, release, is_repeatable=True)

    def release(self) -> None:
        """Releases the tensor, unless that was done."""
        self._release(self.managed)


def take(capsule: object) -> Taken:
    """Marks a capsule as used, and returns its tensor, which is released once."""
    managed = _find(capsule)
    release = _Release(managed)
    taken = Taken(managed, release)
    try:
        _rename(capsule, _USED)
        release.is_due = True
    except BaseException:  # an interrupt
        if not release.is_due:  # interrupted: the capsule releases it, as before
            _rename(capsule, _NAME)
        raise
    if core is None and _get_destructor(capsule) == _destructor.value:
        _set_destructor(capsule, None)  # the capsule may be freed with an exception set
    return taken
