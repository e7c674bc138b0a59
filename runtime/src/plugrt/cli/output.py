"""How commands print: JSON for programs, tables for people."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import click


def print_json(data: Any) -> None:
    """Prints data as JSON on stdout."""
    click.echo(json.dumps(data, indent=2, default=str))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
    """Prints a table on stdout, its last column taking what room is left.

    Where that would be a narrow strip of long text, the texts follow the table instead.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=_width())
    cells = [[str(cell) for cell in row] for row in rows]
    below: list[tuple[str, str]] = []
    if console.width < WIDE and any(len(row[-1]) > console.width // 2 for row in cells):
        below = [(row[0], row[-1]) for row in cells if row[-1]]
        columns, cells = columns[:-1], [row[:-1] for row in cells]
    table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        stretched = column == columns[-1] and not below
        table.add_column(column, overflow="fold", ratio=1 if stretched else None)
    for row in cells:
        table.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
    console.print(table)
    for name, text in below:
        line = f" {name}: {text}"
        click.echo(textwrap.fill(line, console.width, subsequent_indent="   "))
    if below:
        click.echo()


WIDE = 110
"""From this width on, a column of sentences is readable beside others."""


def _width() -> int | None:
    """Returns how wide to print, None for what the terminal says."""
    if sys.stdout.isatty():
        return None
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdigit() and int(columns) else 140


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
