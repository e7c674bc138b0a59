"""Standard streams to rely on: closed ones, without a reader, and printed to by libraries."""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO


def fill_closed() -> None:
    """Opens the null device in place of each standard stream that the caller closed (``>&-``).

    Otherwise the next file that anything opens would get its number, and what is printed.
    """
    number = os.open(os.devnull, os.O_RDWR)
    while number < 3:
        os.set_inheritable(number, True)
        number = os.open(os.devnull, os.O_RDWR)
    os.close(number)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 for as long as we run


class _Outlet(io.FileIO):
    """The file of stdout. After an error the rest goes nowhere, and no reader is no error.

    So ``plugrt doctor | head -1`` does all its work and has the exit code that it has without
    ``head``.
    """

    # typeshed names the argument's type differently from release to release
    def write(self, data, /):  # type: ignore[no-untyped-def]
        try:
            return super().write(data)
        except BrokenPipeError:
            _discard(self.fileno())
            return len(data)
        except OSError:
            _discard(self.fileno())
            raise


def outlive_readers() -> None:
    """Makes stdout ignore that its reader went away, unless something else stands in its place."""
    stdout = sys.__stdout__
    if stdout is not None and sys.stdout is stdout:
        sys.stdout = _text(_Outlet(1, "w", closefd=False), stdout)


def _text(file: io.FileIO, like: TextIO) -> TextIO:
    return io.TextIOWrapper(
        io.BufferedWriter(file),
        encoding=like.encoding,
        errors="replace",  # a terminal that lacks a character is no reason to fail
        line_buffering=file.isatty(),
    )


def _discard(number: int) -> None:
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), number)


def keep_stdout() -> None:
    """From now on, stdout is for Python alone: what native code writes there goes to stderr.

    Libraries print, some when the process ends, and would spoil JSON.
    """
    try:
        if sys.stdout.fileno() != 1:
            return  # a test or a notebook has put something else there
    except (OSError, ValueError):
        return
    sys.stdout.flush()
    kept = _Outlet(os.dup(1), "w")
    os.dup2(2, 1)
    sys.stdout = _text(kept, sys.stdout)


def finish(code: int) -> int:
    """Writes out what was printed; returns ``code``, or 1 if that fails (a full disk, say)."""
    try:
        sys.stdout.flush()
    except OSError as error:
        _discard(sys.stdout.fileno())  # the interpreter's end would complain once more
        if not code:
            print(f"error: {error}", file=sys.stderr)
        return code or 1
    return code
