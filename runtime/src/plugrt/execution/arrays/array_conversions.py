"""`Conversions`: conversion of arrays to NumPy arrays, DLPack capsules and Python scalars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt

from plugrt.base import dlpack_types
from plugrt.errors import ArgumentError, ArgumentTypeError, BufferUnavailable
from plugrt.execution.arrays.array_methods import Methods
from plugrt.frames.argument_errors import PYTHON_ERRORS, refuse_call, with_argument_errors
from plugrt.frames.traceback_filter import filter_traceback
from plugrt.interface import Buffer

_DLPACK_CPU = (dlpack_types.CPU, 0)


def _version_option(max_version: tuple[int, int] | None) -> dict[str, Any]:
    # NumPy < 2.1 has no such parameter; without a version it treats the copy as read-only.
    return {} if np.lib.NumpyVersion(np.__version__) < "2.1.0" else {"max_version": max_version}


def _export_copy(host: npt.NDArray[np.generic], max_version: tuple[int, int] | None) -> object:
    copied = np.array(host, order="C")
    if copied.dtype.isbuiltin == 1:
        return copied.__dlpack__(**_version_option(max_version))
    # Imported later: the reader of capsules belongs to PJRT clients, which a program may not need.
    from plugrt.capi.buffers.dlpack_host import export_array

    return export_array(copied)


class Conversions(Methods):
    """The methods of `Array` that read data: they wait, and raise if the computation failed."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def shape(self) -> tuple[int, ...]: ...
        @property
        def dtype(self) -> np.dtype[Any]: ...
        @property
        def ndim(self) -> int: ...
        @property
        def size(self) -> int: ...
        def _host(self) -> npt.NDArray[np.generic]: ...
        def _only_buffer(self, use: str) -> Buffer: ...
        def __copy__(self) -> Self: ...
        def __buffer__(self, flags: int, /) -> memoryview: ...  # of the core's arrays

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        """Waits and returns the contents, read-only, and without a copy if the device allows it.

        A PJRT library's small arrays (up to 1 kB) are always copied, which is faster than a view.
        """
        # Without the decorator, which takes a tenth of a small array's first read.
        try:
            try:
                host = self._host()
                if dtype is not None and np.dtype(dtype) != host.dtype:
                    if copy is False:
                        raise ArgumentError(
                            f"a conversion from {host.dtype} to {dtype} needs a copy"
                        )
                    return host.astype(dtype)
                return host.copy() if copy else host
            except PYTHON_ERRORS as error:
                refuse_call(self.__array__, error, dtype=dtype, copy=copy)
        except Exception as error:  # raised again without plugrt's frames
            filter_traceback(error)
            raise

    def _buffer(self, flags: int, /) -> memoryview:
        """Waits and returns a read-only view of the contents, for `__buffer__` of the core.

        ``memoryview(x)`` and `np.frombuffer` use it. It is not Python's ``__buffer__`` (PEP 688),
        whose views keep the array alive: NumPy tries that first, so a kept `np.asarray` would keep
        the memory on the device. Without the core use ``memoryview(np.asarray(x))``. The view
        outlives the array. Raises `BufferError` for dtypes without a format code in the protocol,
        such as bfloat16.
        """
        host = self._host()
        try:
            return host.data
        except ValueError as error:
            raise BufferUnavailable(
                f"an array of {host.dtype.name} has no buffer: {error}"
            ) from error

    @with_argument_errors
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Returns a DLPack capsule that shares the memory of an array on one device.

        With ``copy`` it shares nothing. ``dl_device`` may be the data's device, or the CPU ``(1,
        0)``; raises `BufferError` for another one, or if a copy is needed and forbidden. Shared
        memory is exported in a capsule from before DLPack 1.0, which every ``max_version`` allows;
        a copy in host memory in the newest one that NumPy makes. On a GPU the contents are there
        for work on ``stream``, a number as in the array API standard: the host waits for them, or
        with a handle above 2 that stream; with -1 nothing waits (for a copy, the host does).
        Raises `ArgumentError` for values that the standard lacks; for host memory it is None or
        -1. A consumer must synchronise before it drops the last reference while its work runs.
        """
        here = self.__dlpack_device__()
        stream = dlpack_types.require_stream(stream, here[0])
        target = here
        if dl_device is not None:
            what = "DLPack's device type and the device's number, such as (1, 0) for the host"
            target = dlpack_types.require_pair(dl_device, "dl_device", what)
        if max_version is not None:
            what = "the newest version of DLPack that is understood, such as (1, 0)"
            dlpack_types.require_pair(max_version, "max_version", what)
        if target not in (here, _DLPACK_CPU):
            raise BufferUnavailable(
                f"there is no way from DLPack device {here} to {target}; device_put the array first"
            )
        if target == here and not copy:
            return self._only_buffer("DLPack").to_dlpack(stream)
        if copy is False:
            raise BufferUnavailable(f"DLPack device {target} needs a copy of the array on {here}")
        if target == _DLPACK_CPU:
            return _export_copy(self._host(), max_version)
        # The consumer cannot wait for a copy made here: -1 applies only to the array itself.
        after = None if stream == dlpack_types.NO_WAIT else stream
        return self.__copy__()._only_buffer("DLPack").to_dlpack(after)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Returns DLPack's device type and id: ``(1, 0)`` for the host, ``(2, n)`` for CUDA's n."""
        return self._only_buffer("DLPack").dlpack_device()

    @with_argument_errors
    def item(self, *index: int) -> bool | int | float | complex:
        """Returns the only element, or the one at ``index``, as a Python scalar."""
        found: bool | int | float | complex = self._host().item(*index)
        return found

    @with_argument_errors
    def tolist(self) -> Any:
        """Returns nested lists of Python scalars."""
        return self._host().tolist()

    @with_argument_errors
    def tobytes(self, order: Literal["C", "F", "A", "K"] | None = "C") -> bytes:
        """Returns the contents as bytes in the given memory order."""
        return self._host().tobytes(order)

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ArgumentError(
                f"the truth value of an array of shape {self.shape} is ambiguous; use "
                "array_api.any or array_api.all"
            )
        return bool(self._host().item())

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iu" and not self.dtype.name.startswith(("int", "uint")):
            raise ArgumentTypeError(
                f"only integer arrays can be an index; this one is {self.dtype.name}"
            )
        return int(self._scalar("index"))

    def _scalar(self, target: str) -> Any:
        if self.ndim != 0:
            raise ArgumentTypeError(
                f"only 0-d arrays convert to {target}; this one has shape {self.shape}"
            )
        return self._host().item()

    def __len__(self) -> int:
        if not self.ndim:
            raise ArgumentTypeError("len() of a 0-d array")
        return self.shape[0]

    def __format__(self, spec: str) -> str:
        return format(self._scalar("a formatted number"), spec) if spec else str(self)
