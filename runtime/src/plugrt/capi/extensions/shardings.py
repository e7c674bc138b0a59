"""Shardings: how a compiled program wants its arguments, and gives its results, distributed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrt.capi import values
from plugrt.capi.executables import Executable


def _shardings(args: Any, count: int) -> Sequence[bytes]:
    sizes = values.unpack(args.sharding_sizes, count)
    pointers = values.unpack(args.shardings, count)
    return [values.data(p, n) for p, n in zip(pointers, sizes, strict=True)]


def parameter_shardings(executable: Executable) -> Sequence[bytes]:
    """Returns an ``xla.OpSharding`` proto for each parameter; nothing if it is not partitioned."""
    table = executable.library.extension("Shardings")
    args = table.call("Shardings_Executable_ParameterShardings", executable=executable.pointer)
    return _shardings(args, args.num_parameters)


def output_shardings(executable: Executable) -> Sequence[bytes]:
    """Returns an ``xla.OpSharding`` proto for each result; nothing if it is not partitioned."""
    table = executable.library.extension("Shardings")
    args = table.call("Shardings_Executable_OutputShardings", executable=executable.pointer)
    return _shardings(args, args.num_outputs)
