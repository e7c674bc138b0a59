"""`guard`: the functions of libraries, called so that C++ exceptions become errors.

cffi and the compiled core are C, where nothing can catch an exception: it would end the process.
`core.guard` returns a C++ function for each of the library's, which calls it and returns its own
error for an exception; the functions that read and free errors recognise these. Without the core,
or with one built without a C++ compiler, functions are called as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrt.capi.abi._abi import ffi
from plugrt.native.native_core import core

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

CATCHES = hasattr(core, "guard")
"""Whether C++ exceptions become errors; `plugrt doctor` says where they do not."""

_POINTER, _NOTHING = 0, 1
_OF_ERRORS = {
    f"struct {prefix}_Error_{function}_Args": kind
    for prefix in ("PJRT", "PLUGIN_Profiler")
    for function, kind in {"Destroy": 2, "Message": 3, "GetCode": 4, "ForEachPayload": 5}.items()
}
"""The kinds of functions, as in guard.h: those for these structs may get an error made here.

The profiler's structs have the fields of the C API's at the same places.
"""

# Process-wide: functions in C++ are limited in number, and the addresses are the process's.
_GUARDED: dict[tuple[int, int, str], int] = {}


def guard(function: object, name: str, owner: str) -> Any:
    """Returns a function that calls this one, of at most one argument, a pointer.

    Returns ``function`` itself where exceptions cannot be caught. ``name`` is of the C API, and
    messages say that it is of ``owner``.
    """
    kind = ffi.typeof(function)
    takes = [a.item.cname if a.kind == "pointer" else "" for a in kind.args]
    if not CATCHES or len(takes) > 1 or "" in takes or kind.result.kind not in ("pointer", "void"):
        return function
    returns = _NOTHING if kind.result.kind == "void" else _POINTER
    of_errors = _OF_ERRORS.get(takes[0]) if takes else None
    as_kind = returns if of_errors is None else of_errors
    key = int(ffi.cast("uintptr_t", function)), as_kind, name  # slots may share a function
    if key not in _GUARDED:
        made = core.guard(*key[:2], f"{name} of {owner}")
        if made is None:
            return function  # thousands of functions of other libraries are guarded already
        _GUARDED[key] = made
    return ffi.cast(kind, _GUARDED[key])


def take_caught(pointer: CData) -> str | None:
    """Returns the text of an exception that a guarded function caught; None for other pointers."""
    return core.take_caught(int(ffi.cast("uintptr_t", pointer))) if CATCHES else None
