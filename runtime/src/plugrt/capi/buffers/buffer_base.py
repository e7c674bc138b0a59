"""`BufferBase`: destroys a buffer with the last reference to it, in Python or in the core."""

from __future__ import annotations

from collections.abc import Callable
from sys import getrefcount
from typing import TYPE_CHECKING, Any, TypeVar

from plugrt.capi.abi._abi import ffi
from plugrt.capi.buffers.buffer_spec import BufferSpec
from plugrt.capi.loading.owned_handles import ALONE
from plugrt.native.native_core import core

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

T = TypeVar("T", bound=type)


class PythonBuffer:
    """Holds a ``PJRT_Buffer*`` and its spec, and destroys the buffer.

    Its ``__del__`` needs half the time of `plugrt.capi.loading.owned_handles.own`. If the garbage
    collector calls it for a member of a cycle, which may be used after that, the handle is passed
    to `own`.
    """

    if not TYPE_CHECKING:  # mypy refuses two bases with slots
        __slots__ = (
            "_awaited", "_dead", "_doomed", "_holds", "_pointer", "_reason", "_spec", "_takers"
        )  # fmt: skip

    _pointer: CData | None
    _spec: BufferSpec
    _dead: CData
    _reason: str
    _awaited: bool  # the core's: whether its reads need not wait
    _view_owner: Any = None  # the core's: destroys a buffer that it has made a view of
    _share: Callable[[CData], CData | None]

    # Default arguments: at exit the interpreter may have cleared this module's globals.
    def __del__(
        self, _getrefcount: Callable[[object], int] = getrefcount, _alone: int = ALONE
    ) -> None:
        try:
            pointer = self._pointer
        except AttributeError:  # a signal handler raised before ``__init__`` did anything
            return
        if pointer is None:
            pointer = self._dead
        if _getrefcount(self) > _alone:
            if not self._spec.handle.exiting:
                self._share(pointer)
            return
        self._pointer = None  # until here a weak reference may pass this object to another thread
        handle = self._spec.handle
        free_args = handle.destroy_args
        try:
            args = free_args.pop()
        except IndexError:
            if handle.exiting:
                return
            args = handle.new_destroy_args()
        args.buffer = pointer
        error = handle.buffer_destroy(args)
        if error:
            handle.library.log_failure("Buffer_Destroy", error)
        free_args.append(args)


BufferBase = PythonBuffer
if core is not None and not TYPE_CHECKING:
    BufferBase = core.Buffer
"""The first base of `plugrt.capi.buffers.buffer.Buffer`. The core's class destroys buffers of
exactly that class; subclasses have their own owner."""


def as_made_by_launches(cls: T) -> T:
    """Decorator of `Buffer`: registers it in the core as the class of launches' results."""
    if core is not None:
        core.set_buffer_class(cls, _pointer_at, _address_of)
    return cls


def _pointer_at(address: int) -> CData:
    return ffi.cast("PJRT_Buffer*", address)


def _address_of(pointer: CData) -> int:
    return int(ffi.cast("uintptr_t", pointer))
