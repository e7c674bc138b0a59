"""Makes standard streams safe: closed streams, broken pipes, and output of native code."""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO


def fill_closed() -> None:
    """Opens the null device in place of each standard stream that the caller closed (``>&-``).

    Otherwise the next opened file would get its number and receive what is printed.
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
    """The file of stdout. After an error further output is discarded; a broken pipe is no error.

    So ``plugrt doctor | head -1`` does all its work and has the exit code that it has without
    ``head``.
    """

    # typeshed's type of the argument differs between releases
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
    """Makes stdout ignore a broken pipe, unless sys.stdout was replaced."""
    stdout = sys.__stdout__
    if stdout is not None and sys.stdout is stdout:
        sys.stdout = _text(_Outlet(1, "w", closefd=False), stdout)


def _text(file: io.FileIO, like: TextIO) -> TextIO:
    return io.TextIOWrapper(
        io.BufferedWriter(file),
        encoding=like.encoding,
        errors="replace",  # a terminal may lack a character
        line_buffering=file.isatty(),
    )


def _discard(number: int) -> None:
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), number)


def keep_stdout() -> None:
    """Reserves stdout for Python: output of native code goes to stderr from now on.

    Libraries print, some at exit, which would corrupt JSON.
    """
    try:
        if sys.stdout.fileno() != 1:
            return  # a test or a notebook has replaced it
    except (OSError, ValueError):
        return
    sys.stdout.flush()
    kept = _Outlet(os.dup(1), "w")
    os.dup2(2, 1)
    sys.stdout = _text(kept, sys.stdout)


def finish(code: int) -> int:
    """Flushes stdout; returns ``code``, or 1 if that fails (for example on a full disk)."""
    try:
        sys.stdout.flush()
    except OSError as error:
        _discard(sys.stdout.fileno())  # the interpreter would report it again at exit
        if not code:
            print(f"error: {error}", file=sys.stderr)
        return code or 1
    return code
