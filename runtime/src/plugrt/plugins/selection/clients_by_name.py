"""`ClientsByName`: what `backends` returns: a mapping that starts a client when it is looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from plugrt.interface import Client
from plugrt.plugins.table import Table


class ClientsByName(Mapping[str, Client]):
    """Name to client, the default first; ``get`` starts the client of a name."""

    def __init__(self, names: tuple[str, ...], table: Table, get: Callable[[str], Client]) -> None:
        self._names, self._table, self._get = names, table, get

    def __getitem__(self, name: str) -> Client:
        if name in self._names:
            return self._get(name)
        # It may be another name of one of them.
        rows = (row for row in self._table.rows if row.matches_name(name))
        for label in map(self._table.label, rows):
            if label in self._names:
                return self._get(label)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<backends {', '.join(self._names)}>"
