"""How commands print: JSON for programs, tables for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click


def print_json(data: Any) -> None:
    """Prints data as JSON on stdout."""
    click.echo(json.dumps(data, indent=2, default=str))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
    """Prints a table on stdout, its last column taking what room is left."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold", ratio=1 if column == columns[-1] else None)
    for row in rows:
        table.add_row(*(Text(str(cell), style=STYLES.get(str(cell), "")) for cell in row))
    Console(width=None if sys.stdout.isatty() else 140).print(table)


STYLES = {
    "initialised": "bold green",
    "broken": "bold red",
    "incompatible": "bold red",
    "duplicate": "yellow",
    "unavailable": "yellow",
    "not selected": "dim",
}
"""The styles of words that stand alone in a cell: the states of candidates."""


def json_option(command: Any) -> Any:
    """The option ``--json`` that every command takes where it prints data."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)
