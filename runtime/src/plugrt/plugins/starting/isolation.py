"""`start_isolated`: starts a plugin's backend in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from plugrt.errors import ConfigError
from plugrt.interface import OptionValue
from plugrt.plugins import vendors
from plugrt.plugins.discovery.installed_plugins import HOOK_GROUPS
from plugrt.plugins.plugin_table import Table
from plugrt.plugins.record import Record, Source
from plugrt.plugins.starting.loading import import_value

if TYPE_CHECKING:
    from plugrt.plugins.coordination import Connection

GROUP = "plugrt.isolation"


def start_isolated(
    row: Record,
    table: Table,
    options: Mapping[str, OptionValue],
    distributed: Connection | None,
) -> Any:
    """Returns the client of the first installed package with the hook ``plugrt_start_isolated``.

    Raises `ConfigError` where none has it, for a plugin that only this process knows, and in a
    program of several processes.
    """
    asked = f"PLUGRT_ISOLATE names {row.name}"
    if row.source is Source.REGISTERED:
        raise ConfigError(
            f"{asked}, which {row.value} registered in this process: other processes lack it. "
            "Install the plugin with an entry point, or take the name out"
        )
    if distributed is not None:
        raise ConfigError(
            f"{asked}, and plugrt.distributed connects several processes: an isolated backend is "
            "of one process. Take the name out, or do without initialize"
        )
    for record in table.implementing(GROUP):
        offered = import_value(record)
        table.hooks.register(offered, record.who)
        answers = table.hooks.call(
            HOOK_GROUPS[GROUP], offered,
            name=row.name, options=options, seconds=table.config.isolate_seconds,
        )  # fmt: skip
        return answers[0] if answers else None
    cure = vendors.install("remote")
    raise ConfigError(f"{asked}, and no installed package isolates plugins; {cure}")
