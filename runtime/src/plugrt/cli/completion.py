"""Completes names of plugins in a shell."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


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
