"""`PluginWork`: runs plugins' code, one plugin at a time; it may not call for devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from plugrt.errors import PluginBroken
from plugrt.interface import Client
from plugrt.lifetime.interruptions import scope
from plugrt.plugins.plugin import Plugin
from plugrt.plugins.plugin_table import Table
from plugrt.plugins.record import Record
from plugrt.plugins.starting.loading import load
from plugrt.plugins.starting.starting import prepare_topologies, start

if TYPE_CHECKING:
    from plugrt.plugins.coordination import Connection


class PluginWork:
    """Imports and starts the plugins of a table; the caller holds the lock of their `Backends`.

    A plugin that calls for devices meanwhile gets `PluginBroken`.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._at_work: Record | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether a plugin's code is running."""
        return self._at_work is not None

    def load(self, row: Record) -> Plugin:
        """Returns a row's plugin; see `plugrt.plugins.starting.loading.load`."""
        with self._note_work(row):
            return load(row, self._table)

    def prepare_topologies(self, row: Record) -> Plugin:
        """Returns a row's plugin, ready to create topologies."""
        with self._note_work(row):
            return prepare_topologies(row, self._table)

    def start(self, row: Record, distributed: Connection | None) -> Client:
        """Returns a row's client; see `plugrt.plugins.starting.starting.start`."""
        with self._note_work(row):
            return start(row, self._table, distributed)

    def refuse_reentry(self) -> None:
        """Raises `PluginBroken` if a plugin's code is running."""
        if self._at_work is not None:
            raise PluginBroken(
                f"{self._at_work} requests devices while it is imported or started; a plugin must "
                "not, because there are no devices before it has started"
            )

    @scope
    def _note_work(self, row: Record) -> Iterator[None]:
        self.refuse_reentry()
        try:
            self._at_work = row
            yield
        finally:
            self._at_work = None
