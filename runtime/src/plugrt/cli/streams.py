"""Standard streams that a command can rely on, whatever was closed and whatever libraries print."""

from __future__ import annotations

import os
import sys


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
    kept = os.fdopen(os.dup(1), "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors)
    os.dup2(2, 1)
    sys.stdout = kept


def finish(code: int) -> int:
    """Writes out what was printed; returns ``code``, or 1 if that fails (a full disk, say)."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # What is left goes nowhere: the interpreter's end would complain of it once more.
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), sys.stdout.fileno())
        if not code:
            print(f"error: {error}", file=sys.stderr)
        return code or 1
    return code
