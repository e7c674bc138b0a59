"""Arguments on the command line: errors in them, and the names that a shell completes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click
from click.shell_completion import CompletionItem

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


def complete_plugin(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Returns the names of plugins that begin with ``incomplete``; for a path, files."""
    from plugrt.plugins.selection.backends import process_backends

    if "/" in incomplete or incomplete.startswith("."):
        return [CompletionItem(incomplete, type="file")]
    names = {row.name: row.who for row in process_backends().table.rows}
    return [
        CompletionItem(name, help=who)
        for name, who in sorted(names.items())
        if name.startswith(incomplete)
    ]
