"""`usage_errors`: reports errors in command-line arguments as wrong usage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from plugrt.errors import PjrtError, PlugrtError, read_message


@contextmanager
def usage_errors(*kinds: type[PlugrtError]) -> Iterator[None]:
    """Raises `click.UsageError`, whose exit code is 2, for the block's errors of these classes.

    The message is the error's own, without the name of a PJRT error code.
    """
    try:
        yield
    except kinds as error:
        message = error.message if isinstance(error, PjrtError) else read_message(error)
        raise click.UsageError(message) from error
