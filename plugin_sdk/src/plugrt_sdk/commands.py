"""The commands that the SDK adds to ``plugrt``: `abi`, `conform`, `export`, `new`, `trace`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from plugrt.cli.usage import complete_plugin, usage_errors
from plugrt.errors import (
    FileRefused,
    InvalidArgument,
    PluginBroken,
    PluginIncompatible,
    UnknownPlatform,
)
from plugrt.plugins import hookimpl
from plugrt_sdk.abi.command import abi
from plugrt_sdk.conformance.command import command as conform
from plugrt_sdk.tracing.command import trace

_FILE = click.Path(dir_okay=False, exists=True, path_type=Path)


@hookimpl
def plugrt_add_commands(cli: Any) -> None:
    """Adds the commands to the command line."""
    cli.add_command(abi)
    cli.add_command(conform)
    cli.add_command(export)
    cli.add_command(new)
    cli.add_command(trace)


@click.command()
@click.argument("name", shell_complete=complete_plugin)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write; libpjrt_NAME.so by default.",
)  # fmt: skip
@click.option(
    "--minor", type=int, metavar="N",
    help="The version 0.N of the PJRT C API to report, for an older host; the newest by default.",
)  # fmt: skip
def export(name: str, output: Path | None, minor: int | None) -> None:
    """Write an installed plugin as a PJRT library.

    The file exports GetPjrtApi, so that any PJRT host in a Python process can load it: JAX with
    PJRT_NAMES_AND_LIBRARY_PATHS=NAME:FILE. The plugin and plugrt-sdk must be installed for the
    Python of that process. No compiler is needed.
    """
    from plugrt_sdk.export import export_library

    with usage_errors(InvalidArgument, UnknownPlatform):
        written = export_library(name, output or Path(f"libpjrt_{name}.so"), minor=minor)
    click.echo(written)


@click.command()
@click.argument("name")
@click.option(
    "--kind", type=click.Choice(["python", "library", "cpp", "cpp-stubs"]), default="python",
    show_default=True, help="What the device is driven with.",
)  # fmt: skip
@click.option(
    "--path", type=click.Path(path_type=Path), metavar="FOLDER",
    help="The folder to make; NAME in this one by default.",
)  # fmt: skip
@click.option("--library", type=_FILE, help="With --kind library: the PJRT library to package.")
@click.option("--torch-xla", is_flag=True, help="Offer it to PyTorch/XLA as well.")
def new(name: str, kind: str, path: Path | None, library: Path | None, torch_xla: bool) -> None:
    """Write a new plugin package.

    NAME is the name that users will install and set in JAX_PLATFORMS. The package runs at once, is
    found by plugrt and by stock JAX, and has tests, a CI workflow, a README and a licence. KIND is
    one of

    \b
    python     a backend in Python: four methods, which NumPy fills until yours do
    library    an existing PJRT library (a shared library that exports GetPjrtApi)
    cpp        a runtime in C++ with a few kernels, and a backend in Python over it
    cpp-stubs  a new PJRT library in C++: CMake, and a stub for each function of
               the header that you point to (pjrt_c_api.h)
    """
    from plugrt_sdk.new_package import Kind, NewPackage, write_package
    from plugrt_sdk.package_names import PackageName

    with usage_errors(InvalidArgument, PluginBroken, PluginIncompatible, FileRefused):
        package = NewPackage(PackageName(name), Kind(kind), path or Path(name), library, torch_xla)
        written = write_package(package)
    for file in written:
        click.echo(package.folder / file)
    click.echo(f"\n{package.next_steps()}")
