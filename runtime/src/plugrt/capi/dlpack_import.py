"""Buffers over existing memory: a DLPack capsule's, or memory at an address."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt import interface
from plugrt.capi import dlpack
from plugrt.capi.abi._abi import ffi
from plugrt.capi.buffer import Buffer
from plugrt.capi.buffer_spec import BufferSpec, make_layout
from plugrt.capi.callback_threads import keep_forever, mark_callback
from plugrt.capi.client_handle import ClientHandle
from plugrt.capi.devices import Device
from plugrt.errors import InvalidArgument, PjrtError, PlugrtError

_keys = itertools.count(1)
_imported: dict[int, Callable[[], None]] = {}


def import_capsule(handle: ClientHandle, capsule: Any, device: Device) -> interface.Buffer:
    """Returns a buffer over the memory of a ``dltensor`` capsule, which is marked as used.

    Host memory is copied when it is not in C order, in which programs take their arguments, when
    the library wants another alignment, and when the device has a memory of its own.
    """
    try:
        return _import(handle, capsule, device)
    except PlugrtError as error:
        # The capsule ends with the error, and not while that goes through the caller's frames:
        # what runs when a capsule ends is Python, which an exception under way disturbs.
        error._capsule = capsule  # type: ignore[attr-defined]
        raise


def _import(handle: ClientHandle, capsule: Any, device: Device) -> interface.Buffer:
    tensor = dlpack.read(capsule)
    shape, dtype = tensor.shape, tensor.dtype
    on_host = tensor.device_type == dlpack.CPU
    if tensor.is_in_c_order and on_host == device.client.capabilities.dlpack:
        try:
            spec = BufferSpec(handle, shape, dtype, device)
            buffer = view(handle, tensor.address, spec, None, tensor.release)
        except InvalidArgument:
            if not on_host:
                raise
        else:
            dlpack.take(capsule)
            return buffer
    if not on_host:
        raise InvalidArgument(
            f"the capsule's memory (device type {tensor.device_type}, shape {shape}, strides "
            f"{tensor.strides}) cannot be shared with {device!r}; make a contiguous copy there "
            "first"
        )
    dlpack.take(capsule)
    try:
        array = host_array(tensor.address, shape, tensor.strides, dtype)
        return device.client.buffer_from_host(array, device)
    finally:
        tensor.release()


def host_array(
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
    handle: ClientHandle,
    address: int,
    spec: BufferSpec,
    strides: tuple[int, ...] | None,
    done: Callable[[], None],
) -> Buffer:
    """Returns a buffer over existing memory; ``done`` is called once, when it needs that no more.

    ``strides`` are in elements; `InvalidArgument` unless they are those of a dense array.
    """
    layout, _keep = make_layout(spec.shape, strides)
    key = next(_keys)
    _imported[key] = done
    try:
        args = handle.library.call(
            "Client_CreateViewOfDeviceBuffer",
            client=handle.pointer,
            device_buffer_ptr=ffi.cast("void*", address),
            dims=spec.dims,
            num_dims=len(spec.shape),
            element_type=spec.element_type,
            layout=layout,
            device=spec.device.pointer,
            on_delete_callback=_release_view,
            on_delete_callback_arg=ffi.cast("void*", key),
        )
    except PjrtError:
        # Some libraries call back for a view that they refuse, some do not.
        _imported.pop(key, None)
        raise
    return Buffer(args.buffer, spec)


@keep_forever
@ffi.callback("void(*)(void*, void*)")  # type: ignore[untyped-decorator]
@mark_callback
def _release_view(_pointer: Any, key: Any) -> None:
    done = _imported.pop(int(ffi.cast("uintptr_t", key)), None)
    if done is not None:
        done()
