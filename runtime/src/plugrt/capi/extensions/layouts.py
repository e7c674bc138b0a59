"""Layouts: memory layouts of arrays on a device, in XLA's text form such as ``{1,0}``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.element_types import dtype_to_element_type
from plugrt.capi.buffer import Buffer
from plugrt.capi.executable import Executable
from plugrt.capi.loading.function_table import Table

if TYPE_CHECKING:
    from plugrt.capi.client import Client

_SERIALIZED = ("serialized_bytes", "serialized_layout", "serialized_layout_deleter")


def _text(table: Table, layout: Any, *, owned: bool) -> str:
    """Returns the text of a layout, and destroys it if it is ours."""
    try:
        args = table.call("Layouts_MemoryLayout_Serialize", layout=layout)
        return table.owned_bytes(args, *_SERIALIZED).decode("utf-8", "backslashreplace")
    finally:
        if owned:
            table.dispose("Layouts_MemoryLayout_Destroy", "layout", layout)


def buffer_layout(buffer: Buffer) -> str:
    """Returns the layout of a buffer."""
    table = buffer._spec.handle.library.extension("Layouts")
    args = table.call("Layouts_Buffer_MemoryLayout", buffer=buffer._live())
    return _text(table, args.layout, owned=True)


def default_layout(client: Client, shape: tuple[int, ...], dtype: np.dtype[Any]) -> str:
    """Returns the layout that a library chooses for arrays of that type."""
    table = client.library.extension("Layouts")
    args = table.call(
        "Layouts_Client_GetDefaultLayout",
        client=client.handle().pointer,
        type=dtype_to_element_type(dtype, client.library.version[1]),
        dims=ffi.new("int64_t[]", list(shape)),
        num_dims=len(shape),
    )
    return _text(table, args.layout, owned=True)


def output_layouts(executable: Executable) -> Sequence[str]:
    """Returns the layouts of the results (PJRT 0.81 and later)."""
    table = executable.library.extension("Layouts")
    args = table.call("Layouts_Executable_GetOutputLayouts", executable=executable.pointer)
    found = table.handles(args, "layouts", "num_outputs")
    return [_text(table, layout, owned=False) for layout in found]


def parameter_layouts(executable: Executable) -> Sequence[str]:
    """Returns the layouts that the arguments must have (PJRT 0.93 and later)."""
    table = executable.library.extension("Layouts")
    args = table.call("Layouts_Executable_GetParameterLayouts", executable=executable.pointer)
    found = table.handles(args, "layouts", "num_parameters")
    return [_text(table, layout, owned=False) for layout in found]
