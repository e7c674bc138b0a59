"""Prints the results of commands: JSON, or tables for people."""

from __future__ import annotations

import json
import logging
import os
import sys
import textwrap
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any, TextIO

import click

from plugrt.errors import escape_controls


def print_json(data: object) -> None:
    """Prints data as JSON on stdout."""
    click.echo(json.dumps(data, indent=2, default=str))


def print_line(text: str, *, err: bool = False) -> None:
    """Prints text on stdout or stderr, as `escape_controls` shows it.

    On a terminal each line is wrapped between words.
    """
    text = escape_controls(text)
    stream = sys.stderr if err else sys.stdout
    if is_watched(stream):
        width = get_width(stream)
        text = "\n".join(_wrap(line, width) for line in text.split("\n"))
    click.echo(text, err=err)


def is_watched(stream: TextIO) -> bool:
    """Whether lines are wrapped: at a terminal, and where COLUMNS is set."""
    return stream.isatty() or "COLUMNS" in os.environ


class WarningLines(logging.Handler):
    """Prints plugrt's log on stderr, wrapped like other text of a command."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        print_line(record.getMessage(), err=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
    """Prints a table on stdout, as wide as its contents or the terminal. Words are not split.

    If the last column would be too narrow for its long texts, they follow the table instead. If the
    longest words do not fit side by side, each row is printed as a paragraph.
    """
    width = get_width(sys.stdout)
    cells = [[escape_controls(str(cell)) for cell in row] for row in rows]
    below: list[tuple[str, str]] = []
    if width < WIDE and any(len(row[-1]) > width // 2 for row in cells):
        below = [(row[0], row[-1]) for row in cells if row[-1]]
        columns, cells = columns[:-1], [row[:-1] for row in cells]
    widths = _column_widths([columns, *cells], width - 1)
    if title:
        click.echo(f"{click.style(title, bold=True)}\n")
    if widths is None:
        _print_paragraphs(columns, cells, width)
    else:
        _print_grid([columns, *cells], widths)
    if below:
        click.echo()
    for name, text in below:
        click.echo(_wrap(f" {name}: {text}", width))
    click.echo()


def _column_widths(rows: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """Returns the width of each column, None if the longest words do not fit side by side."""
    contents = list(zip(*rows, strict=True))
    whole = [max(map(len, texts)) for texts in contents]
    least = [max(len(w) for text in texts for w in ["", *text.split()]) for texts in contents]
    spare = width - len(_GAP) * (len(contents) - 1) - sum(least)
    if spare < 0:
        return None
    widths = list(least)
    # Columns that need least come first: the rest is for columns of sentences.
    order = sorted(range(len(widths)), key=lambda i: whole[i] - least[i])
    for left, i in zip(range(len(order), 0, -1), order, strict=True):
        more = min(whole[i] - least[i], spare // left)
        widths[i] += more
        spare -= more
    return widths


def _print_grid(rows: Sequence[Sequence[str]], widths: list[int]) -> None:
    for number, row in enumerate(rows):
        styled = [STYLES.get(text, {}) for text in row]
        wrapped = [_wrap(text, max(width, 1), "").splitlines()
                   for text, width in zip(row, widths, strict=True)]  # fmt: skip
        for line in zip_longest(*wrapped, fillvalue=""):
            parts = [text.ljust(width) for text, width in zip(line, widths, strict=True)]
            parts[-1] = parts[-1].rstrip()
            shown = [click.style(part, **style) if style else part
                     for part, style in zip(parts, styled, strict=True)]  # fmt: skip
            click.echo(f" {_GAP.join(shown)}".rstrip())
        if number == 0:
            click.echo(" " + "-" * (sum(widths) + len(_GAP) * (len(widths) - 1)))


def _print_paragraphs(columns: Sequence[str], cells: list[list[str]], width: int) -> None:
    for row in cells:
        click.echo(_wrap(f" {row[0]}", width))
        for name, cell in zip(columns[1:], row[1:], strict=True):
            if cell:
                click.echo(_wrap(f"   {name}: {cell}" if name else f"   {cell}", width))


def _wrap(line: str, width: int, indent: str = "    ") -> str:
    indent += line[: len(line) - len(line.lstrip())] if line.startswith("  ") else ""
    return textwrap.fill(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


_GAP = "   "
"""The separator of columns."""
WIDE = 110
"""The least terminal width for a column of sentences beside others."""
_NOBODYS_WIDTH = 140
"""The width where stdout is no terminal."""


def get_width(stream: TextIO) -> int:
    """Returns the width for the output: COLUMNS, or the width of the stream's terminal."""
    stated = os.environ.get("COLUMNS", "")
    if stated.isdecimal() and int(stated):
        return int(stated)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _NOBODYS_WIDTH
    except (OSError, ValueError):  # no terminal; no file at all
        return _NOBODYS_WIDTH


STYLES: dict[str, dict[str, Any]] = {
    "initialised": {"fg": "green", "bold": True},
    "broken": {"fg": "red", "bold": True},
    "incompatible": {"fg": "red", "bold": True},
    "duplicate": {"fg": "yellow"},
    "unavailable": {"fg": "yellow"},
    "not selected": {"dim": True},
}
"""The styles of cells that contain just this word: states of candidates."""


def json_option(command: Any) -> Any:
    """Adds the option ``--json``: JSON on stdout, and nothing else there."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")(command)
