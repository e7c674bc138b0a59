"""`Replies`: reads a library's outputs from argument structs, with every pointer checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from plugrt.capi.abi import c_values
from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.process_map import is_code, is_memory
from plugrt.capi.loading.exception_guard import guard
from plugrt.errors import InvalidReply, escape_controls
from plugrt.interface import OptionValue

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData


def _get_function_name(args: CData) -> str:
    """Returns the function that an argument struct belongs to."""
    name: str = ffi.typeof(args).item.cname
    return name.removeprefix("struct ").removesuffix("_Args")


_MOST_BYTES = 1 << 16
"""The most that is kept of a library's text."""


class Replies:
    """Reads fields; values that the API does not allow raise `InvalidReply`."""

    owner: str
    """The library's name for messages."""

    def invalid(self, args: CData, what: str) -> InvalidReply:
        """Returns the exception for a reply that cannot be used; ``what`` follows "it ..."."""
        return InvalidReply(
            f"{self.owner}: {_get_function_name(args)} reported success, but {what}"
        )

    @contextmanager
    def reading(self, args: CData, field: str) -> Iterator[None]:
        """Within it, `InvalidReply` and `ValueError` get the names of the function and field."""
        try:
            yield
        except (InvalidReply, ValueError) as error:
            message = error.message if isinstance(error, InvalidReply) else str(error)
            raise self.invalid(args, f"its {field} cannot be read: {message}") from None

    def check_handles(self, args: CData, fields: tuple[str, ...]) -> None:
        """Raises `InvalidReply` for NULL in a field that must contain a handle."""
        for field in fields:
            if not getattr(args, field):
                raise self.invalid(args, f"it gave no {field} (NULL)")

    def text(self, args: CData, field: str) -> str:
        """Returns a string whose size is in ``<field>_size``, control characters escaped.

        Of a longer one it has the first `_MOST_BYTES`: several copies are made of an error's text.
        """
        pointer, size = getattr(args, field), getattr(args, f"{field}_size")
        if size and pointer == ffi.NULL:
            raise self.invalid(args, f"it gave no {field} (NULL), but {size} bytes were stated")
        with self.reading(args, field):
            if size > _MOST_BYTES and not is_memory(int(ffi.cast("uintptr_t", pointer)), size):
                raise InvalidReply(f"{size} bytes are not memory of this process")
            found = escape_controls(c_values.text(pointer, min(size, _MOST_BYTES)))
        return found if size <= _MOST_BYTES else f"{found}… {size - _MOST_BYTES} bytes more"

    def data(self, args: CData, field: str, size: str | None = None) -> bytes:
        """Returns bytes whose number is in ``<field>_size`` or another field."""
        with self.reading(args, field):
            return c_values.data(getattr(args, field), getattr(args, size or f"{field}_size"))

    def items(self, args: CData, field: str, count: str | int) -> list[Any]:
        """Returns the elements of an array whose length is in the field ``count``, or that."""
        number = getattr(args, count) if isinstance(count, str) else count
        pointer = getattr(args, field)
        if number and pointer == ffi.NULL:
            raise self.invalid(args, f"it gave no {field} (NULL), but {number} were stated")
        with self.reading(args, field):
            return c_values.unpack(pointer, number)

    def handles(self, args: CData, field: str, count: str) -> list[CData]:
        """Returns an array of handles, none of them NULL."""
        found = self.items(args, field, count)
        for i, handle in enumerate(found):
            if not handle:
                raise self.invalid(args, f"{field}[{i}] of {len(found)} is NULL")
        return found

    def distinct_devices(self, args: CData, field: str, count: str) -> list[CData]:
        """As `handles`; raises if a device occurs twice."""
        found = self.handles(args, field, count)
        if len(set(found)) != len(found):
            raise self.invalid(args, f"its {field} list one device twice: {found}")
        return found

    def strings(self, args: CData, field: str, sizes: str, count: str) -> list[str]:
        """Returns the strings of parallel arrays of pointers and sizes."""
        number = getattr(args, count)
        pointers = self.items(args, field, number)
        with self.reading(args, field):
            lengths = self.items(args, sizes, number)
            return [c_values.text(p, n) for p, n in zip(pointers, lengths, strict=True)]

    def named_values(self, args: CData, field: str, count: str) -> dict[str, OptionValue]:
        """Returns an array of ``PJRT_NamedValue`` as a dict."""
        with self.reading(args, field):
            return c_values.read_named_values(getattr(args, field), getattr(args, count))

    def owned_bytes(self, args: CData, field: str, owner: str, deleter: str) -> bytes:
        """Returns a copy of bytes that the library owns, and calls its deleter once."""
        free, holder = self.function(args, deleter), getattr(args, owner)
        if holder and not is_memory(int(ffi.cast("uintptr_t", holder)), 1):
            raise self.invalid(
                args, f"its {owner} is {holder}, which is not memory of this process"
            )
        try:
            return self.data(args, field)
        finally:
            if free is not None:
                free(holder)

    def function(self, args: CData, field: str) -> Callable[[CData], None] | None:
        """Returns a function pointer of a reply, None for NULL."""
        found: Callable[[CData], None] = getattr(args, field)
        address = int(ffi.cast("uintptr_t", found))
        if address and not is_code(address):
            raise self.invalid(args, f"its {field} is at {address:#x}, where there is no code")
        name = f"{field} of {_get_function_name(args)}"
        return guard(found, name, self.owner) if address else None
