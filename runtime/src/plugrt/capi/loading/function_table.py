"""`Table`: calls a library's functions; missing functions and errors become exceptions."""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi._grown import GROWN
from plugrt.capi.abi._handles import HANDLES
from plugrt.capi.abi.process_map import is_code, is_memory
from plugrt.capi.abi.structs import StructSizes, new_struct, struct_type
from plugrt.capi.loading.exception_guard import guard
from plugrt.capi.loading.negotiation import QUERIES, Ways
from plugrt.capi.loading.owned_handles import address_of, own
from plugrt.capi.loading.replies import Replies
from plugrt.capi.log import logger
from plugrt.errors import (
    InvalidArgument,
    InvalidReply,
    PjrtError,
    PluginBroken,
    PlugrtError,
    Unimplemented,
    Unknown,
    describe,
    error_from_code,
)
from plugrt.frames.argument_errors import after_checks
from plugrt.lifetime.callback_exits import raise_exit
from plugrt.native.native_core import core

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

Slot: TypeAlias = "Callable[[CData], Any]"
_INVALID_ARGUMENT, _UNIMPLEMENTED = 3, 12
_FIRST_PAUSE, _LONGEST_PAUSE = 1e-5, 1e-3
"""The first and the longest pause between two polls of an event, in seconds."""
_LARGEST_TO_FREE = 64
"""Bytes of the arguments that the core fills in."""


@cache
def complete_types() -> None:
    """Makes cffi create all struct types at once, before a finaliser can run during a creation.

    cffi 2.1 creates each type at its first use; if a collection meanwhile runs a finaliser that
    uses the same type, the process ends (``realize_c_type.c``: ``ctx.types[s->type_index] ==
    op2``).
    """
    # Workaround for cffi-types
    collecting = gc.isenabled()
    try:  # an interrupt may come when the collector has been disabled
        gc.disable()
        for name in ffi.list_types()[1]:
            ffi.typeof(f"struct {name}")
    finally:
        if collecting:
            gc.enable()


class Table(Replies):
    """A C struct of functions, each of which has one argument struct.

    ``slots`` maps each name to the library's function, or, where the struct is too short or the
    slot is NULL, to a stub that raises `Unimplemented`. ``size`` is the size that the struct
    states, ``owner`` names the library in messages, and ``sizes`` are the sizes of structs in its
    header.
    """

    prefix = "PJRT_"

    def __init__(
        self,
        table: object,
        size: int,
        names: Iterable[str],
        owner: str,
        sizes: StructSizes,
    ) -> None:
        self.owner = owner
        self.sizes = sizes
        self.slots: dict[str, Slot] = {}
        self.missing: set[str] = set()
        self.ways = Ways()
        self._freers: dict[str, tuple[Slot, Callable[[CData | int], object]]] = {}
        fields = dict(ffi.typeof(table).item.fields)
        for name in names:
            inside = fields[name].offset + ffi.sizeof("void*") <= size
            self.slots[name] = self._slot(table, name, inside)

    def _slot(self, table: object, name: str, inside: bool) -> Slot:
        full = self.prefix + name
        if inside:
            function = getattr(table, name)
            address = int(ffi.cast("uintptr_t", function))
            if address:
                if not is_code(address):
                    raise PluginBroken(
                        f"{self.owner}: {full} is at {address:#x}, where there is no code to run"
                    )
                guarded: Slot = guard(function, full, self.owner)
                return guarded
        if name == "Event_Await":
            self.missing.add(name)
            return self._await_by_polling
        self._forget(name, f"{full} is not implemented by {self.owner}")
        return self.slots[name]

    def has(self, name: str) -> bool:
        """Whether the library has that function, and has not answered UNIMPLEMENTED to a query."""
        return name not in self.missing

    @after_checks
    def call(self, name: str, **inputs: object) -> CData:
        """Calls a function with these fields; returns its argument struct, results filled in.

        Raises the `PjrtError` that the library reports, and `InvalidReply` where it reports none
        and gives NULL for a handle. ``inputs`` are kept alive until the call returns.
        """
        struct = f"{self.prefix}{name}_Args"
        args = new_struct(f"struct {struct}", self.sizes)
        for field, value in inputs.items():
            try:
                setattr(args, field, value)
            except (OverflowError, TypeError) as wrong:
                raise InvalidArgument(
                    f"{self.prefix}{name} of {self.owner} takes no {value!r} as {field}: {wrong}"
                ) from None
        try:
            error = self.slots[name](args)
        except SystemError as found:  # cffi's, where a Python exception is set after the call
            self._refuse_left(name, found)
        if error:
            if self.substitute(name, error, args):
                return self.call(name, **inputs)
            error = self.resize(name, args, error, struct, args)
        if error:
            raise self.error_of(name, error)
        if struct in HANDLES:
            self.check_handles(args, HANDLES[struct])
        return args

    def _refuse_left(self, name: str, found: SystemError) -> NoReturn:
        left = found.__cause__
        if not isinstance(left, Exception):
            raise left or found  # an interrupt is not the library's fault
        raise InvalidReply(
            f"{self.prefix}{name} of {self.owner} left a Python exception set: {describe(left)}. "
            "It must handle what the Python functions that it calls raise"
        ) from left

    def error_of(self, name: str, error: object) -> PjrtError:
        """Returns the exception for a function's error (or its address) and frees it.

        An answer UNIMPLEMENTED gets the function's name; a query counts as missing after it
        (`plugrt.capi.loading.negotiation`). Raises the original exception if a plugin in
        Python in this process raised it to end the process, or a signal handler: the error has only
        its text.
        """
        found = self.take_error(error)
        raise_exit(found)
        if not isinstance(found, Unimplemented):
            return found
        told = found.message
        if self.prefix + name not in told:
            told = f"{self.prefix}{name} of {self.owner}: {told}"
        if name in QUERIES:
            self._forget(name, told)
        return Unimplemented(told)

    def await_event(self, args: CData) -> object:
        """Waits as ``PJRT_Event_Await``, or in another way; returns the event's error, if any."""
        error = self.slots["Event_Await"](args)
        if error and self.substitute("Event_Await", error, args):
            error = self.slots["Event_Await"](args)
        return error

    def substitute(self, name: str, error: object, args: CData) -> bool:
        """Replaces ``Event_Await`` by polling, if it is missing; returns whether it did so now.

        It is missing if it returns UNIMPLEMENTED and that is not the event's own error; then that
        is freed.
        """
        if (
            name != "Event_Await"
            or name in self.missing
            or not self._has_code(error, _UNIMPLEMENTED)
        ):
            return False
        own = self._await_by_polling(args)
        is_own = bool(own) and self._has_code(own, _UNIMPLEMENTED)
        if own:
            self.take_error(own)
        if is_own:
            return False
        self.take_error(error)
        self.missing.add(name)
        self.slots[name] = self._await_by_polling
        return True

    def resize(self, name: str, args: CData, error: Any, struct: str, sized: CData) -> object:
        """Calls a function again if its error is about a struct's size; returns the last error.

        ``sized`` is the struct, which the arguments are or point to. A strict library checks the
        size before anything else, so that the failed call has changed nothing.
        Another size is kept once a call with it has succeeded: until then the error of a library
        that accepts every size may only have looked like a refusal.
        """
        for size in self.sizes.possible(struct) if struct in GROWN else ():
            stated = int(sized.struct_size)
            if size == stated or not self._is_size_refusal(error, struct, stated):
                continue
            self.take_error(error)
            sized.struct_size = size
            error = self.slots[name](args)
            if not error:
                self.sizes.settle(struct, size)
                break
        return error

    def _is_size_refusal(self, error: object, struct: str, size: int) -> bool:
        """Whether an error (or its address) may refuse a struct's size; it is not freed.

        The text of such an error has the word "size", and names the struct or the stated size.
        """
        if not self._has_code(error, _INVALID_ARGUMENT):
            return False
        text = self._error_message(ffi.cast("PJRT_Error*", error)).lower()
        return "size" in text and bool(re.search(rf"\bstruct|{struct.lower()}|\b{size}\b", text))

    def _has_code(self, error: object, code: int) -> bool:
        """Whether an error (or its address) has that code; it is not freed."""
        error = ffi.cast("PJRT_Error*", error)
        memory = is_memory(int(ffi.cast("uintptr_t", error)), 1)
        return memory and self._error_code(error) == code

    def _await_by_polling(self, args: CData) -> object:
        """Waits as ``PJRT_Event_Await``; returns the event's error."""
        asked = new_struct("struct PJRT_Event_IsReady_Args")
        asked.event = args.event
        pause = _FIRST_PAUSE
        while not (error := self.slots["Event_IsReady"](asked)) and not asked.is_ready:
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        if error:
            return error
        failed = new_struct("struct PJRT_Event_Error_Args")
        failed.event = args.event
        return self.slots["Event_Error"](failed)

    def _forget(self, name: str, message: str) -> None:
        """Replaces a function by a stub that raises `Unimplemented`."""
        self.missing.add(name)

        def stub(args: CData) -> NoReturn:
            raise Unimplemented(message)

        self.slots[name] = stub

    def dispose(self, name: str, field: str, pointer: CData) -> None:
        """Calls a function that frees ``pointer``; a failure is only logged."""
        try:
            self.call(name, **{field: pointer})
        except PlugrtError as error:
            logger.debug("%s: %s%s failed: %s", self.owner, self.prefix, name, error)

    def log_failure(self, name: str, error: object) -> None:
        """Logs and frees the error of a destructor."""
        logger.debug("%s: %s failed: %s", self.owner, self.prefix + name, self.take_error(error))

    def own(
        self,
        name: str,
        field: str,
        pointer: CData,
        keep: object = None,
        unless: Sequence[bool] = (),
    ) -> CData:
        """Returns ``pointer`` as an object that frees it with the function ``name``.

        ``keep`` must outlive it; nothing is freed once ``unless`` is non-empty; ``unless`` is also
        the group for `free_group`.
        """

        function, freer = self._freers.get(name, (None, None))
        if freer is None or function is not self.slots[name]:
            freer = self.make_freer(name, field)
            self._freers[name] = (self.slots[name], freer)
        return own(pointer, freer, unless, keep=keep)

    def make_freer(
        self,
        name: str,
        field: str,
        unless: list[bool] | None = None,
        lock: AbstractContextManager[object] | None = None,
        waits: bool = False,
    ) -> Callable[[CData | int], object]:
        """Returns a function that frees the handle at an address, for `own`; in C if possible.

        It does nothing once ``unless`` is not empty, and holds a ``lock``. If it ``waits``, it is
        not called in a callback of the library.
        """
        function, struct = self.slots[name], f"struct {self.prefix}{name}_Args"
        kind, size = struct_type(struct, self.sizes)
        stop = [] if unless is None else unless
        if core is not None and isinstance(function, ffi.CData) and size <= _LARGEST_TO_FREE:
            offset = ffi.offsetof(kind.item, field)
            settle = partial(self._settle_freed, name, field)
            made: Callable[[CData | int], object] = core.Freer(
                address_of(function), size, offset, settle, stop, lock, waits
            )
            return made
        call, spare, held = self.get_hot_slot(name), list[Any](), lock or nullcontext()
        field_type = dict(kind.item.fields)[field].type

        def free(handle: object) -> None:
            try:
                args = spare.pop()
            except IndexError:
                args = new_struct(struct, self.sizes)
            setattr(args, field, ffi.cast(field_type, handle))
            with held:
                try:
                    error = None if stop else call(args)
                except PlugrtError as failed:  # of the stub of a missing function
                    logger.debug("%s: %s%s failed: %s", self.owner, self.prefix, name, failed)
                    return
            if error:
                self._settle_freed(name, field, error, handle)
            spare.append(args)

        return free

    def _settle_freed(self, name: str, field: str, error: object, handle: object) -> None:
        """Calls a destructor again where a struct may have another size; logs its error."""
        struct = f"{self.prefix}{name}_Args"
        args = new_struct(f"struct {struct}", self.sizes)
        setattr(args, field, ffi.cast(ffi.typeof(getattr(args, field)), handle))
        if left := self.resize(name, args, error, struct, args):
            self.log_failure(name, left)

    def get_hot_slot(self, name: str) -> Slot:
        """Returns a function whose error is a number, 0 for success: saves 60 ns a call."""
        function = self.slots[name]
        if not isinstance(function, ffi.CData):
            return function
        hot: Slot = ffi.cast(f"size_t(*)(struct {self.prefix}{name}_Args*)", function)
        return hot

    def take_error(self, error: object) -> PjrtError:
        """Returns the exception for an error of the library (or its address) and frees it."""
        if isinstance(error, int):
            error = ffi.cast("PJRT_Error*", error)
        address = int(ffi.cast("uintptr_t", error))
        if not is_memory(address, 1):
            return Unknown(
                f"{self.owner} reported an error at {address:#x}, not memory of this process"
            )
        try:
            return error_from_code(self._error_code(error), self._error_message(error))
        finally:
            self._destroy_error(error)

    def _error_code(self, error: object) -> int:
        args = new_struct(f"struct {self.prefix}Error_GetCode_Args")
        args.error = error
        try:
            second = self.slots["Error_GetCode"](args)
        except Unimplemented:
            return 2
        if second:
            if second != error:
                self._destroy_error(second)
            return 2
        return int(args.code)

    def _error_message(self, error: object) -> str:
        args = new_struct(f"struct {self.prefix}Error_Message_Args")
        args.error = error
        try:
            self.slots["Error_Message"](args)
            return self.text(args, "message")
        except Unimplemented:
            return f"({self.owner} gives no message)"
        except InvalidReply as fault:
            return f"({fault.message})"

    def _destroy_error(self, error: object) -> None:
        if not is_memory(int(ffi.cast("uintptr_t", error)), 1):
            return
        args = new_struct(f"struct {self.prefix}Error_Destroy_Args")
        args.error = error
        if self.has("Error_Destroy"):
            self.slots["Error_Destroy"](args)


class ExtensionTable(Table):
    """The functions of one extension; its errors are errors of the library."""

    def __init__(self, name: str, base: CData, library: Table) -> None:
        table = ffi.cast(f"PJRT_{name}_Extension*", base)
        names = [field for field, _ in ffi.typeof(table).item.fields[1:]]
        owner = f"the extension {name} of {library.owner}"
        super().__init__(table, base.struct_size, names, owner, library.sizes)
        self._library = library

    def take_error(self, error: object) -> PjrtError:
        return self._library.take_error(error)

    def _is_size_refusal(self, error: object, struct: str, size: int) -> bool:
        return self._library._is_size_refusal(error, struct, size)
