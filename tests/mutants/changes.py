"""Changes of a library's functions, for mutants of tables."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from typing import Any

from mutants.tables import TableFaults, keep, replace_function, sound_table
from plugrt.capi.abi._abi import ffi
from plugrt_sdk.conformance.function_table import is_error, new_args

Sound = Callable[[Any], Any]
"""A function of the correct table."""
OK = ffi.NULL


def address(pointer: Any) -> int:
    """Converts a pointer to a number."""
    return int(ffi.cast("uintptr_t", pointer))


def then(change: Callable[[Any], None]) -> Callable[[Sound], Sound]:
    """Returns a maker of functions that change the results of the correct function."""

    def make(sound: Sound) -> Sound:
        def call(args: Any) -> Any:
            error = sound(args)
            if not is_error(error):
                change(args)
            return error

        return call

    return make


def moves(name: str, pointer: str, size: str) -> TableFaults:
    """Returns a mutant that copies an answer in each call."""

    def move(args: Any) -> None:
        item = ffi.typeof(getattr(args, pointer)).item
        count = ffi.sizeof(item) * int(getattr(args, size))
        moved = keep(ffi.new("char[]", count + 8))
        ffi.memmove(moved, getattr(args, pointer), count)
        setattr(args, pointer, ffi.cast(ffi.typeof(getattr(args, pointer)), moved))

    return replace_function(name, then(move))


def before(change: Callable[[Any], None]) -> Callable[[Sound], Sound]:
    """Returns a maker of functions that change their arguments, and call the correct function."""

    def make(sound: Sound) -> Sound:
        def call(args: Any) -> Any:
            change(args)
            return sound(args)

        return call

    return make


def type_and_rank(buffer: Any) -> tuple[int, int]:
    """Returns a buffer's element type and rank, by the correct library."""
    kind, _kept = new_args("Buffer_ElementType")
    dims, _also = new_args("Buffer_Dimensions")
    kind.buffer = dims.buffer = buffer
    sound_table().Buffer_ElementType(kind)
    sound_table().Buffer_Dimensions(dims)
    return int(kind.type), int(dims.num_dims)


def every(count: int, change: Callable[[Any], None]) -> Callable[[Any], None]:
    """Returns a change that is made at each ``count``-th call."""
    numbers = itertools.count(1)

    def apply(args: Any) -> None:
        if next(numbers) % count == 0:
            change(args)

    return apply


def lose_memory(sound: Sound) -> Sound:
    """Allocates 64 bytes in each call, and never frees them."""
    malloc = ctypes.CDLL(None).malloc

    def call(args: Any) -> Any:
        malloc(64)
        return sound(args)

    return call


def delete_buffer(buffer: Any) -> None:
    """Deletes a buffer by the correct library's function."""
    args, _kept = new_args("Buffer_Delete")
    args.buffer = buffer
    sound_table().Buffer_Delete(args)


def refusal() -> Any:
    """Returns an error that the correct table made."""
    args, _kept = new_args("Plugin_Attributes")
    args.struct_size = 1
    return sound_table().Plugin_Attributes(args)


def keep_deleted(sound: Sound) -> Sound:
    """Deletes nothing, and returns no error."""

    def delete(args: Any) -> Any:
        return OK

    return delete
