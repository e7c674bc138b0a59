"""Converts Python's errors in an operation to plugrt's, which name it and its line."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NoReturn

from plugrt.errors import Internal, InvalidArgument, PlugrtError, ResourceExhausted
from plugrt.frames.argument_errors import PYTHON_ERRORS
from plugrt_numpy.data_types import Function
from plugrt_numpy.operation import Lowering, Operation
from plugrt_numpy.source import FILE
from plugrt_sdk import Launch


def lower(lowering: Lowering, op: Operation) -> Function:
    """Returns the function of an operation from its lowering; raises `Internal` if that fails."""
    try:
        return lowering(op)
    except PYTHON_ERRORS as error:
        _blame(f"{op.name} ({op.where})", error, Internal)


def refuse_depth(error: RecursionError) -> NoReturn:
    """Raises `ResourceExhausted` for functions or regions that nest deeper than Python's stack."""
    raise ResourceExhausted(
        "the program's functions or regions are nested too deep for the NumPy backend, which needs "
        f"up to 9 of Python's frames for each level: sys.getrecursionlimit() is "
        f"{sys.getrecursionlimit()}, the caller's frames included. Raise it by "
        "sys.setrecursionlimit, or nest less: jit(..., inline=True), lax.fori_loop, lax.scan"
    ) from error


def with_operations_named(launch: Launch) -> Launch:
    """Returns a launch whose errors name the operation.

    `ResourceExhausted` where Python's stack is used up, `InvalidArgument` where NumPy refuses
    values, which programs of dynamic shapes can cause (sizes that do not fit); `Internal` for
    everything else, which is the backend's fault.
    """

    def run(arguments: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        try:
            return launch(arguments)
        except RecursionError as error:
            refuse_depth(error)
        except PYTHON_ERRORS as error:
            kind = InvalidArgument if isinstance(error, ValueError) else Internal
            _blame(_operation_in(error.__traceback__), error, kind)

    return run


def _blame(operation: str, error: Exception, kind: type[PlugrtError]) -> NoReturn:
    if isinstance(error, PlugrtError):
        raise error
    raise kind(f"the NumPy backend failed at {operation}: {error}") from error


def _operation_in(traceback: TracebackType | None) -> str:
    """Returns the comment of the innermost line of a program: its operation and location."""
    found = "the launch"
    while traceback is not None:
        filename = traceback.tb_frame.f_code.co_filename
        if filename.startswith(FILE):
            line = linecache.getline(filename, traceback.tb_lineno)
            found = line.partition("  # ")[2].strip() or found
        traceback = traceback.tb_next
    return found
