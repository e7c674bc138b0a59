"""`compile_wait`: the compiled core's waiting for many buffers of a client at once."""

from __future__ import annotations

from typing import Any

from plugrt.capi.abi._abi import ffi
from plugrt.capi.client_handle import ClientHandle
from plugrt.compiled_core import core

_FUNCTIONS = ("Buffer_ReadyEvent", "Event_Await", "Event_Destroy", "Error_Destroy")


def compile_wait(handle: ClientHandle) -> Any:
    """Returns what waits for buffers, and says whether all are there; None where Python has to."""
    functions = [handle.library.slots[name] for name in _FUNCTIONS]
    if core is None or not all(isinstance(f, ffi.CData) for f in functions):
        return None
    return core.Wait(client=handle.core, ready_event=int(ffi.cast("uintptr_t", functions[0])))
