"""Adds the commands of installed packages, through the hook ``plugrt_add_commands``."""

from __future__ import annotations

import click

from plugrt.cli.output import print_line
from plugrt.errors import describe
from plugrt.plugins.backends import process_backends
from plugrt.plugins.hooks import Hooks
from plugrt.plugins.loading import import_value
from plugrt.plugins.record import Record
from plugrt.plugins.table import Table


def add_plugin_commands(group: click.Group, table: Table | None = None) -> None:
    """Adds the commands of every entry point of the group ``plugrt.cli``.

    A package that fails is named in one line on stderr; the others are used.
    """
    table = table or process_backends().table
    hooks = Hooks(table.config.trace_plugins)
    for record in table.commands:
        _add(record, group, hooks)


def _add(record: Record, group: click.Group, hooks: Hooks) -> None:
    try:
        offered = import_value(record)
        hooks.register(offered, record.who)
        hooks.add_commands(offered, group)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 one package's fault must not disable the others
        words = describe(error)
        print_line(f"warning: the commands of {record.who} are left out: {words}", err=True)
