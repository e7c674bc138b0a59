"""Shardings: the shardings of a compiled program's parameters and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plugrt.capi.abi import c_values
from plugrt.capi.abi._abi import ffi
from plugrt.capi.loading.function_table import Table
from plugrt.capi.loading.library import Library

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData


def _shardings(table: Table, args: CData, count: str) -> Sequence[bytes] | None:
    if args.shardings == ffi.NULL:
        return None
    sizes = table.items(args, "sharding_sizes", count)
    pointers = table.items(args, "shardings", count)
    with table.reading(args, "shardings"):
        return [c_values.data(p, n) for p, n in zip(pointers, sizes, strict=True)]


def parameter_shardings(library: Library, executable: object) -> Sequence[bytes] | None:
    """Returns an ``xla.OpSharding`` proto for each parameter; None if it is not partitioned.

    XLA's libraries also answer None for a partitioned program without parameters.
    ``executable`` is a ``PJRT_Executable*``; raises `Unimplemented` without the extension.
    """
    table = library.extension("Shardings")
    args = table.call("Shardings_Executable_ParameterShardings", executable=executable)
    return _shardings(table, args, "num_parameters")


def output_shardings(library: Library, executable: object) -> Sequence[bytes] | None:
    """Returns the same for each result; for no results, one for their empty tuple."""
    table = library.extension("Shardings")
    args = table.call("Shardings_Executable_OutputShardings", executable=executable)
    return _shardings(table, args, "num_outputs")
