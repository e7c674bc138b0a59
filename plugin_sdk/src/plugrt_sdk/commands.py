"""The commands that the SDK adds to ``plugrt``: `export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from plugrt.plugins import hookimpl


@hookimpl
def plugrt_add_commands(cli: Any) -> None:
    """Adds the commands to the command line."""
    cli.add_command(export)


@click.command()
@click.argument("name")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write; libpjrt_NAME.so by default.",
)  # fmt: skip
def export(name: str, output: Path | None) -> None:
    """Write an installed plugin as a PJRT library.

    The file exports GetPjrtApi, so that any PJRT host in a Python process can load it: JAX with
    PJRT_NAMES_AND_LIBRARY_PATHS=NAME:FILE. The plugin and plugrt-sdk must be installed for the
    Python of that process. No compiler is needed.
    """
    from plugrt_sdk.export.library import export_library

    click.echo(export_library(name, output or Path(f"libpjrt_{name}.so")))
