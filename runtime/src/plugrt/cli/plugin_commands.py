"""Adds the commands of installed packages, through the hook ``plugrt_add_commands``."""

from __future__ import annotations

import click

from plugrt.plugins.offers.offers import collect_offers
from plugrt.plugins.selection.backends import process_backends
from plugrt.plugins.table import Table


def add_plugin_commands(group: click.Group, table: Table | None = None) -> None:
    """Adds the commands of every entry point of the group ``plugrt.cli``.

    A package that fails is named in one line on stderr; the others are used.
    """
    table = table or process_backends().table
    for _ in collect_offers(table, "plugrt.cli", "commands", lambda *_: None, cli=group):
        pass  # the hook has added them itself
