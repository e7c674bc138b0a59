"""Layouts of arrays in a device's memory, as the library's extension states them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.element_types import dtype_to_element_type
from plugrt.capi.library.client_handle import ClientHandle
from plugrt.capi.loading.function_table import Table
from plugrt.capi.loading.library import Library
from plugrt.errors import InvalidArgument
from plugrt.interface import Layout, TensorType

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

_SERIALIZED = ("serialized_bytes", "serialized_layout", "serialized_layout_deleter")


def _read(table: Table, layout: CData, *, owned: bool) -> Layout:
    """Returns a library's layout, and destroys it if it is ours."""
    try:
        args = table.call("Layouts_MemoryLayout_Serialize", layout=layout)
        text = table.owned_bytes(args, *_SERIALIZED).decode("utf-8", "backslashreplace")
    finally:
        if owned:
            table.dispose("Layouts_MemoryLayout_Destroy", "layout", layout)
    try:
        return Layout.from_text(text)
    except InvalidArgument as error:
        raise table.invalid(args, f"it wrote a layout that cannot be read: {error}") from None


def buffer_layout(library: Library, pointer: CData) -> Layout:
    """Returns the layout of a ``PJRT_Buffer``."""
    table = library.extension("Layouts")
    args = table.call("Layouts_Buffer_MemoryLayout", buffer=pointer)
    return _read(table, args.layout, owned=True)


def default_layout(handle: ClientHandle, tensor_type: TensorType) -> Layout:
    """Returns the layout that a library chooses for arrays of that shape and dtype."""
    library = handle.library
    table = library.extension("Layouts")
    shape = tensor_type.shape
    args = table.call(
        "Layouts_Client_GetDefaultLayout",
        client=handle.pointer,
        type=dtype_to_element_type(tensor_type.dtype, library.version[1]),
        dims=ffi.new("int64_t[]", list(shape)),
        num_dims=len(shape),
    )
    return _read(table, args.layout, owned=True)


def output_layouts(library: Library, pointer: CData) -> Sequence[Layout]:
    """Returns the layouts of a ``PJRT_Executable``'s results (PJRT 0.81 and later)."""
    table = library.extension("Layouts")
    args = table.call("Layouts_Executable_GetOutputLayouts", executable=pointer)
    found = table.handles(args, "layouts", "num_outputs")
    return [_read(table, layout, owned=False) for layout in found]


def parameter_layouts(library: Library, pointer: CData) -> Sequence[Layout]:
    """Returns the layouts that its arguments must have (PJRT 0.93 and later)."""
    table = library.extension("Layouts")
    args = table.call("Layouts_Executable_GetParameterLayouts", executable=pointer)
    found = table.handles(args, "layouts", "num_parameters")
    return [_read(table, layout, owned=False) for layout in found]
