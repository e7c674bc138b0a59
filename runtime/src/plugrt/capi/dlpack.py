"""DLPack capsules to buffers and back, sharing the memory."""

from __future__ import annotations

import ctypes
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.element_types import dtype_of
from plugrt.capi.buffer import Buffer
from plugrt.capi.buffer_spec import BufferSpec, layout_of
from plugrt.capi.callback_threads import entered, for_good
from plugrt.capi.client_handle import ClientHandle
from plugrt.capi.devices import Device
from plugrt.capi.host_read import minor_to_major
from plugrt.errors import InvalidArgument, PjrtError, UnsupportedDtype

if TYPE_CHECKING:
    from collections.abc import Callable

CPU = 1
"""``kDLCPU``"""
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
_imported: dict[int, Any] = {}


def _dtype_code(dtype: np.dtype[Any]) -> int:
    if dtype.name == "bfloat16":
        return _BFLOAT
    if dtype.kind in _CODES and dtype.isbuiltin == 1:
        return _CODES[dtype.kind]
    raise UnsupportedDtype(f"DLPack has no type for {dtype}")


def _dtype(code: int, bits: int, lanes: int) -> np.dtype[Any]:
    if lanes == 1 and bits % 8 == 0:
        if code == _BFLOAT and bits == 16:
            return dtype_of(_BFLOAT16)
        kinds = {value: kind for kind, value in _CODES.items()}
        if code in kinds:
            return np.dtype(f"{kinds[code]}{bits // 8}")
    raise UnsupportedDtype(f"the DLPack type of code {code}, {bits} bits, {lanes} lanes is unknown")


def dlpack_device(buffer: Buffer) -> tuple[int, int]:
    """Returns ``(device_type, device_id)``; `Unimplemented` for memory that is not the host's."""
    if not buffer._ask("Buffer_IsOnCpu").is_on_cpu:
        buffer._unimplemented("dlpack_device for memory other than the host's")
    return CPU, 0


def export(buffer: Buffer) -> Any:
    """Returns a ``dltensor`` capsule that shares the buffer's memory and keeps it from donation."""
    device_type, device_id = dlpack_device(buffer)
    spec = buffer._spec
    code = _dtype_code(spec.dtype)
    if minor_to_major(spec.home, buffer._live()) != tuple(range(len(spec.shape)))[::-1]:
        raise UnsupportedDtype(
            f"{spec.tensor_type} is not laid out in memory as DLPack can say, or "
            f"{spec.home.library.owner} does not tell how it is"
        )
    buffer.block_until_ready()
    reference = buffer.refer()
    managed = ffi.new("DLManagedTensor*")
    tensor = managed.dl_tensor
    shape = ffi.new("int64_t[]", list(spec.shape))
    tensor.data = ffi.cast("void*", buffer.unsafe_pointer())
    tensor.device_type, tensor.device_id = device_type, device_id
    tensor.ndim, tensor.shape = len(spec.shape), shape
    tensor.code, tensor.bits, tensor.lanes = code, spec.dtype.itemsize * 8, 1
    key = next(_keys)
    managed.manager_ctx = ffi.cast("void*", key)
    managed.deleter = _release_exported
    _exported[key] = (managed, shape, reference)
    address = int(ffi.cast("uintptr_t", managed))
    return _new(address, _NAME, ctypes.cast(_capsule_gone, ctypes.c_void_p))


# Both may be called when the interpreter has emptied this module: their defaults are still there.
@for_good
@ffi.callback("void(*)(DLManagedTensor*)")  # type: ignore[untyped-decorator]
def _release_exported(
    managed: Any, _cast: Any = ffi.cast, _exported: dict[int, Any] = _exported
) -> None:
    _exported.pop(int(_cast("uintptr_t", managed.manager_ctx)), None)


@for_good
@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)  # type: ignore[untyped-decorator]
def _capsule_gone(
    capsule: int,
    _name: bytes = _NAME,
    _cast: Any = ffi.cast,
    _is_valid: Any = _is_valid,
    _get_dying: Any = _get_dying,
) -> None:
    """Runs when a capsule dies; one that nobody took still owns its tensor."""
    if _is_valid(capsule, _name):
        managed = _cast("DLManagedTensor*", _get_dying(capsule, _name))
        managed.deleter(managed)


def import_capsule(home: ClientHandle, capsule: Any, device: Device) -> Buffer:
    """Returns a buffer over the memory of a ``dltensor`` capsule, which is used up by that.

    Host memory is copied when it is not in C order, in which programs take their arguments, when
    the library wants another alignment, and when the device has a memory of its own.
    """
    try:
        address = _get(capsule, _NAME)
    except (ValueError, ctypes.ArgumentError) as error:
        raise InvalidArgument(f"not an unused dltensor capsule: {capsule!r}") from error
    managed = ffi.cast("DLManagedTensor*", address)
    tensor = managed.dl_tensor
    shape = tuple(ffi.unpack(tensor.shape, tensor.ndim)) if tensor.ndim else ()
    dtype = _dtype(tensor.code, tensor.bits, tensor.lanes)
    strides = None
    if tensor.strides != ffi.NULL and tensor.ndim:
        strides = tuple(ffi.unpack(tensor.strides, tensor.ndim))

    def done() -> None:
        if managed.deleter != ffi.NULL:
            managed.deleter(managed)

    address = int(ffi.cast("uintptr_t", tensor.data)) + tensor.byte_offset
    in_order = strides is None or _is_c_order(shape, strides)
    on_host = tensor.device_type == CPU
    if in_order and on_host == device.client.capabilities.dlpack:
        try:
            buffer = view(home, address, BufferSpec(home, shape, dtype, device), None, done)
        except InvalidArgument:
            if not on_host:
                raise
        else:
            _rename(capsule, _USED)
            return buffer
    if not on_host:
        raise InvalidArgument(
            f"the capsule's memory (device type {tensor.device_type}, shape {shape}, strides "
            f"{strides}) cannot be shared with {device!r}; make a contiguous copy there first"
        )
    _rename(capsule, _USED)
    try:
        array = _host_array(address, shape, strides, dtype)
        return device.client.buffer_from_host(array, device)
    finally:
        done()


def _is_c_order(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size > 1 and stride != expected:
            return False
        expected *= size
    return True


def _host_array(
    address: int, shape: tuple[int, ...], strides: tuple[int, ...] | None, dtype: np.dtype[Any]
) -> npt.NDArray[Any]:
    """Returns a view of host memory; ``strides`` are in elements, None means C order."""
    if strides is None:
        strides = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
    steps = [stride * (size - 1) for size, stride in zip(shape, strides, strict=True)]
    first = sum(step for step in steps if step < 0) * dtype.itemsize
    last = sum(step for step in steps if step > 0) * dtype.itemsize + dtype.itemsize
    if 0 in shape:
        return np.empty(shape, dtype)
    memory = ffi.buffer(ffi.cast("char*", address + first), last - first)
    in_bytes = tuple(stride * dtype.itemsize for stride in strides)
    return np.ndarray(shape, dtype, memory, -first, in_bytes)


def view(
    home: ClientHandle,
    address: int,
    spec: BufferSpec,
    strides: tuple[int, ...] | None,
    done: Callable[[], None],
) -> Buffer:
    """Returns a buffer over memory that is there; ``done`` is called once when it is not needed.

    ``strides`` are in elements; `InvalidArgument` unless they are those of a dense array.
    """
    layout, _keep = layout_of(spec.shape, strides)
    key = next(_keys)
    _imported[key] = done
    try:
        args = home.library.call(
            "Client_CreateViewOfDeviceBuffer",
            client=home.pointer,
            device_buffer_ptr=ffi.cast("void*", address),
            dims=spec.dims,
            num_dims=len(spec.shape),
            element_type=spec.element_type,
            layout=layout,
            device=spec.device.pointer,
            on_delete_callback=_view_deleted,
            on_delete_callback_arg=ffi.cast("void*", key),
        )
    except PjrtError:
        # Some libraries call back for a view that they refuse, some do not.
        _imported.pop(key, None)
        raise
    return Buffer(args.buffer, spec)


@for_good
@ffi.callback("void(*)(void*, void*)")  # type: ignore[untyped-decorator]
@entered
def _view_deleted(_pointer: Any, key: Any) -> None:
    done = _imported.pop(int(ffi.cast("uintptr_t", key)), None)
    if done is not None:
        done()
