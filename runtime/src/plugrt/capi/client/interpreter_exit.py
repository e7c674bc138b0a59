"""Destroys the clients of libraries when the interpreter ends."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from plugrt.capi.library.callback_threads import expected
from plugrt.capi.library.client_handle import ClientHandle
from plugrt.capi.loading.owned_handles import free_group, stop_freeing
from plugrt.lifetime.forks import FORKED, call_in_child
from plugrt.lifetime.main_interpreter import is_entered, wait_while
from plugrt.native.finalizers import finish_pending
from plugrt.native.native_core import core, new_lock

if TYPE_CHECKING:
    from plugrt.capi.buffers.buffer import Buffer

_PACKAGE = "plugrt.capi."
_ENDING = "was stopped because the interpreter is ending"
_PATIENCE_SECONDS = 0.5
"""How long the interpreter's end waits for the calls of daemon threads."""
# Process-wide: the exit of the interpreter stops every client that is left.
_live: weakref.WeakSet[ClientHandle] = weakref.WeakSet()


def destroy_at_exit(handle: ClientHandle) -> None:
    """Makes `destroy_all` destroy this client if it still lives then."""
    _live.add(handle)


def destroy_all(drop_views: Callable[[], None]) -> None:
    """Destroys the remaining clients; later destructors do nothing, and other calls raise.

    C++ destroys a library's static objects when the process exits, and threads of the library that
    use them then crash (https://eel.is/c++draft/basic.start.term). Destroying a client waits for
    its work while Python callbacks still work. Memory that a library may alias is never freed.

    A client's executables, events and buffers that the program still references are destroyed
    before it. Later uses, by finalisers of objects in modules and by threads that still run, raise
    `FailedPrecondition`. Three kinds of objects are not destroyed, since they may be in use during
    this or later: buffers whose memory is lent (a NumPy view, a DLPack capsule) after
    ``drop_views`` has dropped plugrt's own views; all objects and the clients if another thread
    stays inside a call, such as a long compilation; and all objects if a library may still call a
    Python function.
    """
    finish_pending()
    left = list(_live)
    is_called = False
    if not expected:
        for handle in left:
            handle.refuse(_ENDING, but_frees=True, ends_daemons=True)
        is_called = not wait_while(_is_called, _PATIENCE_SECONDS)
        if not is_called:
            drop_views()
            for handle in left:
                _free_children(handle)
    for handle in left:
        if is_called:
            handle.keep_forever()
        else:
            handle.destroy()
    for handle in left:
        handle.refuse(_ENDING, ends_daemons=True)
    stop_freeing()


def _is_called() -> bool:
    """Whether another thread may be using a handle: only functions of `capi` and the core do.

    Once calls are refused no thread can begin one. XLA's CPU client crashes if it is destroyed
    during one (xla-cpu-pjrt 0.0.1).
    """
    # Workaround for xla-destroyed-in-call
    if core is not None and core.calls_under_way():
        return True
    return is_entered(lambda frame: str(frame.f_globals.get("__name__")).startswith(_PACKAGE))


def _free_children(handle: ClientHandle) -> None:
    free_group(handle.exiting)
    for buffer in _buffers_of(handle):
        buffer.release_at_exit()
    free_group(handle.exiting)
    handle.sweep()


def _buffers_of(handle: ClientHandle) -> list[Buffer]:
    """Returns the live buffers of a client.

    There is no list of them: it would cost time for each result of a launch. The garbage collector
    finds them, in 0.1 s for a million objects.
    """
    made = getattr(sys.modules.get("plugrt.capi.buffers.buffer"), "Buffer", None)
    if made is None:  # the process has made no buffer
        return []
    # Not `isinstance`, which would call ``__class__`` of other packages' objects.
    found = [thing for thing in gc.get_objects() if type(thing) is made]
    return [buffer for buffer in found if buffer._spec.handle is handle]


@call_in_child
def _abandon_all() -> None:
    """Drops the clients in a forked child process; they belong to the parent.

    Their threads do not exist here: destroying a client would block, or end the process. Nor do the
    parent's other threads, one of which may have held a lock that deletions and finalisers acquire.
    """
    if core is not None:
        core.forget_calls()
    for handle in list(_live):
        handle.abandon()
        handle.lock = new_lock()
        handle.refuse(FORKED)
    _live.clear()
