"""`expect_as_noted`: compares a library's statements about an array with the client's records."""

from __future__ import annotations

from typing import Any

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.element_types import dtype_to_element_type
from plugrt.capi.buffers.buffer import Buffer
from plugrt.errors import Unimplemented
from plugrt_sdk.conformance.expect import expect, expect_equal


def expect_as_noted(buffer: object) -> None:
    """Raises `Mismatch` if a library's statement about an array differs from the client's record.

    plugrt's client states device, memory, shape, dtype and deletion from its own records of the
    put, so a check of the client alone would compare these records with themselves. Skips questions
    that the library answers with UNIMPLEMENTED, and arrays of clients that are not PJRT libraries.
    """
    if not isinstance(buffer, Buffer):
        return
    library, pointer = buffer._spec.handle.library, buffer._live()

    def ask(name: str, field: str) -> Any:
        try:
            return getattr(library.call(f"Buffer_{name}", buffer=pointer), field)
        except Unimplemented:
            return None

    for name, noted in (("Device", buffer.device), ("Memory", buffer.memory)):
        said = ask(name, name.lower())
        what = f"PJRT_Buffer_{name} to say {noted!r}"
        expect(said is None or said == noted.pointer, what, "another one")
    said = ask("ElementType", "type")
    wanted = dtype_to_element_type(buffer.dtype, library.version[1])
    expect(said is None or int(said) == wanted, f"PJRT_Buffer_ElementType to say {wanted}", said)
    shape = library.call("Buffer_Dimensions", buffer=pointer)
    found = tuple(ffi.unpack(shape.dims, shape.num_dims)) if shape.num_dims else ()
    expect_equal(found, tuple(buffer.shape), "PJRT_Buffer_Dimensions:")
    expect(not ask("IsDeleted", "is_deleted"), "PJRT_Buffer_IsDeleted to say false", "true")
