"""``plugrt pack``: writes a model from a program, its weights and the names of its arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from plugrt.cli.inputs import READABLE, NamedFile, read_arrays, read_program_argument
from plugrt.cli.output import print_line
from plugrt.cli.usage import complete_plugin, usage_errors
from plugrt.errors import ArgumentError, ProgramError


@click.command("pack", short_help="Pack a program and its weights as a model.")
@click.argument("file", type=READABLE)
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path),
    help="The model: a zip file where it ends in .zip, else a new folder.",
)  # fmt: skip
@click.option(
    "--name", "names", multiple=True, help="The name of the next argument of the function."
)
@click.option("--result", "results", multiple=True, help="The name of its next result.")
@click.option(
    "--weights", multiple=True, metavar="[NAME=]FILE", type=NamedFile(),
    help="Arrays by the names of arguments (.safetensors, .npz), of parts of NAME where given.",
)  # fmt: skip
@click.option(
    "--bucket", "buckets", multiple=True, metavar="VARIABLE=N,N",
    help="The sizes of a dimension variable, such as batch=1,8,32.",
)  # fmt: skip
@click.option(
    "--feed", "feeds", multiple=True, metavar="OUTPUT=INPUT",
    help="An output that is an input of the next call.",
)  # fmt: skip
@click.option(
    "--pad", "pad", multiple=True, metavar="VARIABLE",
    help="The variables that calls pad; all of them by default.",
)  # fmt: skip
@click.option("--no-pad", is_flag=True, help="Calls have exactly the sizes of a bucket.")
@click.option("--no-check", is_flag=True, help="Do not compare padded calls with others.")
@click.option(
    "--executable", "executables", multiple=True, metavar="BACKEND", shell_complete=complete_plugin,
    help="Also save what this backend compiles.",
)  # fmt: skip
def command(
    file: Path,
    output: Path,
    names: tuple[str, ...],
    results: tuple[str, ...],
    weights: tuple[tuple[str, Path], ...],
    buckets: tuple[str, ...],
    feeds: tuple[str, ...],
    pad: tuple[str, ...],
    no_pad: bool,
    no_check: bool,
    executables: tuple[str, ...],
) -> None:
    """Pack FILE, an export of JAX or a program of StableHLO, as a model for plugrt.load_model.

    Needs jaxlib; running the model does not.
    """
    import plugrt

    arrays: dict[str, Any] = {}
    for prefix, path in weights:
        for key, array in read_arrays(path).items():
            arrays[".".join(filter(None, (prefix, key)))] = array
    sizes = {name: _read_sizes(text) for name, text in map(_split, buckets)}
    with usage_errors(ArgumentError, ProgramError):
        plugrt.pack_model(
            output,
            read_program_argument(file),
            weights=arrays,
            names=names,
            outputs=results,
            buckets=sizes,
            feeds=dict(map(_split, feeds)),
            pad=() if no_pad else pad or None,
            executables=executables,
            check=not no_check,
        )
    print_line(f"wrote {output}")


def _split(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise click.UsageError(f"{text!r} is not NAME=VALUE")
    return name, value


def _read_sizes(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise click.UsageError(f"{text!r} is not a list of sizes such as 1,8,32") from None
