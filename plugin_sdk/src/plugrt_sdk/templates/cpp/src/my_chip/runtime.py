"""The C++ runtime (cpp/runtime.h) in Python: arrays of the device, copies and launches."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from math import prod
from typing import Any

import cffi
import numpy as np
import numpy.typing as npt
from plugrt.errors import Internal, PluginBroken

from my_chip import NAME

# An editable install keeps the library in another folder than this file.
_FOLDER = files("my_chip")
VARIABLE = "MY_CHIP_LIBRARY_PATH"
"""Names another build of the runtime, such as a debug build."""


class DeviceArray:
    """An array on a device. Its memory is freed with the last array that uses it."""

    __slots__ = ("device", "dtype", "memory", "shape")

    def __init__(
        self, memory: Any, shape: tuple[int, ...], dtype: np.dtype[Any], device: int
    ) -> None:
        self.memory = memory
        """What `Runtime.allocate` returned: a pointer, which owns the memory."""
        self.shape = shape
        self.dtype = dtype
        self.device = device

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    def __bool__(self) -> bool:
        """Reads a scalar that decides a loop or a branch."""
        return bool(load_runtime().get(self))

    def __int__(self) -> int:
        """Reads the number of a branch."""
        return int(load_runtime().get(self))


class Runtime:
    """The functions of runtime.h. Raises `PluginBroken` where its library cannot be loaded."""

    def __init__(self) -> None:
        self._ffi = ffi = cffi.FFI()
        header = (_FOLDER / "runtime.h").read_text(encoding="utf-8")
        ffi.cdef(header.partition("// cdef: begin")[2].partition("// cdef: end")[0])
        path = os.environ.get(VARIABLE) or str(_FOLDER / "libmy_chip.so")
        try:
            self._lib = lib = ffi.dlopen(path)
        except OSError as error:
            raise PluginBroken(
                f"the runtime of {NAME} cannot be loaded: {error}; install the package again, or "
                f"correct {VARIABLE}"
            ) from error
        self.most_devices: int = lib.runtime_most_devices()

    def _require(self, status: int) -> None:
        if status:
            message = self._ffi.string(self._lib.runtime_last_error()).decode()
            raise Internal(f"the runtime of {NAME}: {message}")

    def allocate(self, device: int, size: int) -> Any:
        """Returns a pointer that frees its memory when it is dropped; raises `MemoryError`."""
        memory = self._lib.runtime_allocate(device, size)
        if not memory:
            raise MemoryError(f"{NAME}:{device} has no memory for {size} bytes")
        return self._ffi.gc(memory, self._lib.runtime_free, size)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: int) -> DeviceArray:
        """Returns a new array."""
        memory = self.allocate(device, prod(shape) * dtype.itemsize)
        return DeviceArray(memory, shape, dtype, device)

    def put(self, array: npt.NDArray[Any], device: int) -> DeviceArray:
        """Copies a row-major array of the host to a device."""
        made = self.empty(array.shape, array.dtype, device)
        host = self._address(array)
        self._require(self._lib.runtime_copy_in(device, made.memory, host, array.nbytes))
        return made

    def get(self, array: DeviceArray) -> npt.NDArray[Any]:
        """Copies an array to the host, after all earlier launches have ended."""
        host = np.empty(array.shape, array.dtype)
        self._require(self._lib.runtime_wait(array.device))
        address = self._address(host)
        status = self._lib.runtime_copy_out(array.device, address, array.memory, host.nbytes)
        self._require(status)
        return host

    def copy(self, array: DeviceArray, device: int) -> DeviceArray:
        """Copies an array to a device."""
        made = self.empty(array.shape, array.dtype, device)
        self._require(self._lib.runtime_wait(array.device))
        status = self._lib.runtime_copy(device, made.memory, array.memory, array.nbytes)
        self._require(status)
        return made

    def _address(self, array: npt.NDArray[Any]) -> Any:
        return self._ffi.cast("void *", array.__array_interface__["data"][0])

    def kernel(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        numbers: Sequence[int],
        device: int,
    ) -> Callable[..., DeviceArray] | None:
        """Returns a function that launches a kernel; None if the runtime has none of that name."""
        ffi, launch, allocate = self._ffi, self._lib.runtime_launch, self.allocate
        encoded = ffi.new("char[]", name.encode())
        if not self._lib.runtime_has_kernel(encoded):
            return None
        given, size = ffi.new("int64_t[]", list(numbers)), prod(shape) * dtype.itemsize

        def run(*arguments: DeviceArray) -> DeviceArray:
            memory = allocate(device, size)
            status = launch(device, encoded, memory, [a.memory for a in arguments], given)
            if status:
                self._require(status)
            return DeviceArray(memory, shape, dtype, device)

        return run

    def counters(self, device: int) -> dict[str, int]:
        """Returns what the runtime counts of a device, by the names of runtime_counters."""
        found = self._ffi.new("runtime_counters *")
        self._lib.runtime_read_counters(device, found)
        return {name: getattr(found, name) for name, _ in self._ffi.typeof(found).item.fields}


@cache
def load_runtime() -> Runtime:
    """Returns the runtime, which is loaded once."""
    return Runtime()
