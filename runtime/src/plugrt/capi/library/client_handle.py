"""`ClientHandle`: owns a PJRT_Client and frees its buffers, events and executables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from plugrt.base.weak_keys import WeakKeys
from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.process_map import is_memory
from plugrt.capi.abi.structs import new_struct, struct_type
from plugrt.capi.loading.function_table import Slot
from plugrt.capi.loading.library import Library
from plugrt.capi.loading.owned_handles import own
from plugrt.lifetime.forks import keep_forever
from plugrt.native.native_core import core, new_lock

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

_PAGE_BITS = 12
_MAX_PAGES = 1 << 16
_NO_MEMORY = 64  # an address in the first page
_OF_CORE = (
    "LoadedExecutable_Execute", "Buffer_Destroy", "Buffer_IsDeleted", "Client_BufferFromHostBuffer",
    "Event_Destroy", "Event_Await", "Error_Destroy", "Buffer_ReadyEvent", "Event_IsReady",
)  # fmt: skip


def _can_ask_system() -> bool:
    """Whether the core can ask the system if an address is readable; tries two addresses.

    False on other systems, and if an emulator or a sandbox answers instead.
    """
    assert core is not None
    return core.is_readable(id(core)) is True and core.is_readable(_NO_MEMORY) is False


system_says = core is not None and _can_ask_system()


def _has_memory(address: int, size: int) -> bool:
    """Whether the first and the last of ``size`` bytes from ``address`` on can be read.

    Asks the system if the core can, else calls `is_memory`, which also accepts mapped memory that
    is not readable.
    """
    ends = (address, address + size - 1)
    found = {core.is_readable(end) for end in ends} if system_says else {None}
    return is_memory(address, size) if None in found else False not in found


def _do_nothing(args: CData) -> None:
    """Replaces every destructor when the interpreter exits."""


class Launcher(Protocol):
    """An object that keeps functions of a library."""

    def refuse(self, stub: Slot) -> None:
        """Replaces the functions by ``stub``, which raises."""


class ClientHandle:
    """A ``PJRT_Client*`` that lives until the last object that refers to this one is freed."""

    __slots__ = (
        "__weakref__",
        "_is_ready",
        "buffer_destroy",
        "core",
        "destroy_args",
        "donates",
        "drop_reference",
        "exiting",
        "free_buffer",
        "host_readers",
        "keep",
        "known_pages",
        "launchers",
        "library",
        "lock",
        "pending",
        "pointer",
    )  # fmt: skip

    def __init__(self, library: Library, pointer: CData) -> None:
        self.library = library
        self.exiting: list[bool] = []
        self.keep: list[object] = []
        """Objects that must live as long as the client, such as callbacks passed to it."""
        exiting, keep = self.exiting, self.keep

        free = library.make_freer("Client_Destroy", "client", exiting, waits=True)
        self.pointer = own(pointer, free, keep=keep)
        self.buffer_destroy: Slot = _slot_or_nothing(library, "Buffer_Destroy")
        self.destroy_args: list[CData] = []
        self.free_buffer = library.make_freer("Buffer_Destroy", "buffer", exiting)
        """Destroys a ``PJRT_Buffer*``, for `own`."""
        self._is_ready: Slot = _slot_or_nothing(library, "Event_IsReady")
        # Workaround for xla-references-race
        self.lock = new_lock()
        """Held to change a buffer's owner or references or `pending`, and to delete a buffer.

        A finaliser may run at any time, also in the thread that holds it.

        XLA keeps the references of a buffer in a vector that it changes without a lock
        (``xla/pjrt/c/pjrt_c_api_wrapper_impl.cc``), and to acquire one it reads the buffer's
        description after it has left the buffer's mutex, when a deletion may free it (xla-cpu-pjrt
        0.0.1: two threads, `Buffer.refer` beside `Buffer.delete`, crash in seconds).
        """
        self.drop_reference = library.make_freer(
            "Buffer_DecreaseExternalReferenceCount", "buffer", exiting, self.lock
        )
        """Releases an external reference to a ``PJRT_Buffer*``, for `own`."""
        self.donates = False
        """Whether a loaded program's launches donate buffers: other launches then hold theirs."""
        self.host_readers: list[Any] = []
        """`plugrt.capi.buffers.host_read.HostReader` objects that no thread is using."""
        self.launchers: WeakKeys[Launcher, None] = WeakKeys()
        """Objects that keep functions of the library, to call them faster."""
        self.known_pages: set[int] = set()
        """Pages of memory known to be readable, so that not every buffer is looked up.

        At most `_MAX_PAGES` (4 MB): then it is emptied as a whole, and
        pages that are met again are looked up again, once each. A page that is unmapped meanwhile
        stays in it, as one that is unmapped after its look-up would: the check is for addresses
        that a library makes up, not for memory that it frees too early.
        """
        self.pending: list[tuple[Any, object]] = []
        """(event, array) of transfers whose source must live until the event is ready."""
        self.core = None if core is None else self._make_core()
        """The data that the compiled core needs of the library; None if Python does its work."""

    def _make_core(self) -> Any:
        library, exiting = self.library, self.exiting
        functions = [library.slots[name] for name in _OF_CORE]
        # A function that is not C's, such as a ledger's, is called through Python.
        addresses = [
            int(ffi.cast("uintptr_t", f)) if isinstance(f, ffi.CData) else 0 for f in functions
        ]

        # Neither refers to this object or to the client. `own` keeps `keep` alive, and `keep`
        # these: if they were in one garbage cycle with a buffer, the collector would clear them
        # before it frees the buffer.
        def free_at(address: int) -> None:
            if not exiting:
                library.dispose("Buffer_Destroy", "buffer", ffi.cast("PJRT_Buffer*", address))

        log_failure = library.log_failure
        assert core is not None
        self.keep.append((free_at, log_failure))
        _, size_of_options = struct_type("PJRT_ExecuteOptions", library.sizes)
        return core.Client(*addresses, free_at, log_failure, self.pointer, size_of_options)

    def new_destroy_args(self) -> CData:
        """Returns an argument struct for ``buffer_destroy``; return it to ``destroy_args``."""
        return new_struct("struct PJRT_Buffer_Destroy_Args")

    def delete_buffer(self, pointer: CData) -> None:
        """Makes the library free the memory of a ``PJRT_Buffer*``.

        One without ``Buffer_Delete`` frees it with the last reference, by ``Buffer_Destroy``.
        """

        def delete() -> None:
            with self.lock:
                self.library.call("Buffer_Delete", buffer=pointer)

        self.library.ways.take("delete", "", delete, lambda: None)

    def launch_resized(self, args: CData, error: object) -> Any:
        """Launches again where the options may have another size; see `Table.resize`.

        Each program is launched by Python first, so that the core states the size that was taken.
        """
        library = self.library
        error = library.resize(
            "LoadedExecutable_Execute", args, error, "PJRT_ExecuteOptions", args.options
        )
        if self.core is not None:
            _, self.core.size_of_options = struct_type("PJRT_ExecuteOptions", library.sizes)
        return error

    def own(self, name: str, field: str, pointer: CData) -> CData:
        """Returns a child's pointer as an object that frees it (see `Table.own`)."""
        return self.library.own(name, field, pointer, self, self.exiting)

    def release(self, name: str, field: str, pointer: CData) -> None:
        """Calls the destructor ``name`` on a child; errors are logged (callers are finalisers)."""
        if not self.exiting:
            self.library.dispose(name, field, pointer)

    def is_memory(self, address: int, size: int) -> bool:
        """Whether a buffer of ``size`` bytes can be at ``address``."""
        pages = {address >> _PAGE_BITS, (address + size - 1) >> _PAGE_BITS}
        if pages <= self.known_pages:
            return True
        if not _has_memory(address, size):
            return False
        if len(self.known_pages) > _MAX_PAGES:
            self.known_pages.clear()
        self.known_pages |= pages
        return True

    def is_event_ready(self, event: object) -> bool:
        """Whether an event has happened."""
        return bool(self.library.call("Event_IsReady", event=event).is_ready)

    def hold(self, sources: Iterator[tuple[object, object]]) -> None:
        """Keeps each source of (event, source) until the event is ready, then destroys the event.

        A function in C advances the iterator, so that this may be called again after an interrupt.
        """
        with self.lock:
            self.pending.extend(sources)
        self.sweep()

    def sweep(self) -> None:
        """Releases the sources of finished transfers."""
        with self.lock:
            waiting, self.pending = self.pending, []
        for event, source in waiting:
            if self.has_ended(event):
                self.release("Event_Destroy", "event", event)
            else:
                with self.lock:
                    self.pending.append((event, source))
        if self.core is not None:
            with self.lock:
                self.core.pending = bool(self.pending)

    def has_ended(self, event: object) -> bool:
        """Whether a transfer has ended; False if the library cannot report it."""
        args = new_struct("struct PJRT_Event_IsReady_Args")
        args.event = event
        error = self._is_ready(args)
        if error:
            self.library.log_failure("Event_IsReady", error)
        return not error and bool(args.is_ready)

    def abandon(self) -> None:
        """Makes every later destructor do nothing."""
        self.exiting.append(True)
        if self.core is not None:
            self.core.abandon()
        self.buffer_destroy = self._is_ready = _do_nothing

    def keep_forever(self) -> None:
        """Abandons the client, and keeps objects that the library may alias for ever."""
        self.abandon()
        keep_forever(self.pending)

    def destroy(self) -> None:
        """Destroys the client now, and keeps objects that the library may alias for ever.

        Later destructors do nothing: the interpreter is ending.
        """
        self.keep_forever()
        _destroy_client(self.library, self.pointer, self.keep)

    def refuse(self, why: str, *, but_frees: bool = False, ends_daemons: bool = False) -> None:
        """Makes every later call of the library raise, as `Library.refuse_calls` does."""
        if self.core is not None:
            self.core.refuse()
        stub = self.library.refuse_calls(why, but_frees=but_frees, ends_daemons=ends_daemons)
        self.host_readers.clear()
        for launcher in self.launchers.alive():
            launcher.refuse(stub)


def _slot_or_nothing(library: Library, name: str) -> Slot:
    """Returns a function of a library; one that does nothing where the library has none."""
    return library.get_hot_slot(name) if library.has(name) else _do_nothing


def _destroy_client(library: Library, pointer: CData, keep: object) -> None:
    library.dispose("Client_Destroy", "client", pointer)
    del keep  # the library may have called it until now
