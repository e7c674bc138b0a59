"""The types of handlers' states (``XLA_FFI_TypeId``) that backends in Python know."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from itertools import count

from plugrt.capi.abi._abi import ffi
from plugrt.errors import AlreadyExists, InvalidArgument

INFO_SIZE = ffi.sizeof("XLA_FFI_TypeInfo")
_FIRST_ID = 1 << 32
"""The first id that is assigned here. XLA's libraries assign small ones. One handler can be
registered with several libraries of a process; each later library receives the id that the first
one assigned."""


@dataclass(frozen=True)
class HandlerType:
    """The name of a type, and the address of the function that deletes a state of it, or 0."""

    name: str
    deleter: int

    def delete(self, state: object) -> None:
        """Deletes a state, if the type says how."""
        if self.deleter:
            ffi.cast("void(*)(void*)", self.deleter)(state)


# Process-wide: guards `_types`.
_lock = threading.Lock()
# Process-wide: XLA's FFI has one table of types per process, whose ids are in C variables.
_types: dict[int, HandlerType] = {}


def register_type(name: str, type_id: int = 0, deleter: int = 0) -> int:
    """Registers a type in this process, permanently, and returns its id; 0 requests a new id.

    Registering an equal one again does nothing. Raises `AlreadyExists` if the name has another id
    or deleter, or the id another name, and `InvalidArgument` for an empty name.
    """
    if not name:
        raise InvalidArgument("the FFI type has no name")
    with _lock:
        known = next((each for each, found in _types.items() if found.name == name), 0)
        added = type_id or known or next(i for i in count(_FIRST_ID) if i not in _types)
        found = _types.get(added)
        if known not in (0, added) or (found is not None and found.name != name):
            holder = f"it has the id {known}" if known else f"{type_name(added)} has it"
            raise AlreadyExists(
                f"the FFI type {name!r} cannot have the id {added}: {holder}. Fix: give the name "
                "another id, or leave the id 0 and be told one"
            )
        if found is not None and deleter and found.deleter and deleter != found.deleter:
            raise AlreadyExists(f"the FFI type {name!r} has another function that deletes states")
        _types[added] = HandlerType(name, deleter or (found.deleter if found else 0))
    return added


def find_type(type_id: int) -> HandlerType | None:
    """Returns the type of an id, or None if it is not registered."""
    return _types.get(type_id)


def type_name(type_id: int) -> str:
    """Returns a type for messages: its id, and its name where it is known."""
    found = _types.get(type_id)
    return f"{type_id} ({found.name!r})" if found else f"{type_id} (of no registered type)"


def register_type_at(name: str, type_id: int, type_info: int | None) -> None:
    """Registers the type whose ``XLA_FFI_TypeId`` and ``XLA_FFI_TypeInfo`` are at two addresses."""
    pointer = ffi.cast("int64_t*", type_id)
    deleter = 0
    if type_info:
        info = ffi.cast("XLA_FFI_TypeInfo*", type_info)
        if info.struct_size < INFO_SIZE:
            raise InvalidArgument(
                f"the XLA_FFI_TypeInfo of the FFI type {name!r} says that it has "
                f"{info.struct_size} bytes; {INFO_SIZE} are needed"
            )
        deleter = int(ffi.cast("uintptr_t", info.deleter))
    pointer[0] = register_type(name, int(pointer[0]), deleter)
