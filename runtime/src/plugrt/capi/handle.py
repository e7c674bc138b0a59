"""The handle of a client and what all its children share: how they are freed, and when not."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import threading
import weakref
from typing import Any

from plugrt.capi._abi import ffi
from plugrt.capi.callbacks import outside
from plugrt.capi.library import Library
from plugrt.capi.tables import Slot, new_struct
from plugrt.errors import PjrtError


def _nothing(args: Any) -> None:
    """Stands in for every destructor once the interpreter is on its way out."""


class ClientHandle:
    """A ``PJRT_Client*`` that lives until the last child that refers to this object is gone.

    ``pointer`` frees the client when it is deallocated, which comes after the finalisers of all
    that refer to it, also within a cycle; so a client never goes before its buffers.
    """

    __slots__ = (
        "__weakref__", "aliased", "buffer_destroy", "destroy_frames", "exiting", "keep", "library",
        "lock", "lookers", "pending", "pointer",
    )  # fmt: skip

    def __init__(self, library: Library, pointer: Any) -> None:
        self.library = library
        self.exiting: list[bool] = []
        exiting = self.exiting

        def destroy_client(raw: Any) -> None:
            if not exiting:
                outside(functools.partial(_destroy_client, library, raw))

        self.pointer = ffi.gc(pointer, destroy_client)
        self.buffer_destroy: Slot = library.hot_slot("Buffer_Destroy")
        self.destroy_frames: list[Any] = []
        self.lock = threading.Lock()
        """Held while a buffer changes who destroys it."""
        self.lookers: list[Any] = []
        """`plugrt.capi.reads.Looker` objects that no thread uses now."""
        self.pending: list[tuple[Any, Any]] = []
        """(event, array) of transfers whose source must live until the event is ready."""
        self.aliased: dict[int, Any] = {}
        """Arrays whose memory live buffers use, by the id of the buffer object."""
        self.keep: list[Any] = []
        """What must live as long as the client, such as callbacks that it was given."""
        _LIVE.add(self)

    def new_destroy_frame(self) -> Any:
        """Returns an argument struct for ``buffer_destroy``; return it to ``destroy_frames``."""
        return new_struct("struct PJRT_Buffer_Destroy_Args")

    def release(self, name: str, field: str, pointer: Any) -> None:
        """Calls the destructor ``name`` on a child; an error there has no one to tell."""
        if self.exiting:
            return
        args = new_struct(f"struct PJRT_{name}_Args")
        setattr(args, field, pointer)
        error = self.library.slots[name](args)
        if error:
            self.library.take_error(error)

    def event_is_ready(self, event: Any) -> bool:
        """Whether an event has happened."""
        return bool(self.library.call("Event_IsReady", event=event).is_ready)

    def hold(self, event: Any, source: Any) -> None:
        """Keeps ``source`` until ``event`` is ready, then destroys the event."""
        self.pending.append((event, source))
        self.sweep()

    def sweep(self) -> None:
        """Lets the sources of finished transfers go."""
        waiting, self.pending = self.pending, []
        for event, source in waiting:
            if self.event_is_ready(event):
                self.release("Event_Destroy", "event", event)
            else:
                self.pending.append((event, source))


def _destroy_client(library: Library, pointer: Any) -> None:
    # An error has no one to tell: this runs in finalisers and at exit.
    with contextlib.suppress(PjrtError):
        library.call("Client_Destroy", client=pointer)


_LIVE: weakref.WeakSet[ClientHandle] = weakref.WeakSet()


@atexit.register
def _retire() -> None:
    """Destroys the clients that are left, and makes every later destructor do nothing.

    A library whose threads still work while the process runs its exit handlers crashes there;
    destroying a client waits for its work, which Python can still answer now. Memory that a
    library may have aliased is kept from Python for good.
    """
    for handle in list(_LIVE):
        handle.exiting.append(True)
        handle.buffer_destroy = _nothing
        for keep in (handle.pending, handle.aliased):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(keep))
        _destroy_client(handle.library, handle.pointer)
