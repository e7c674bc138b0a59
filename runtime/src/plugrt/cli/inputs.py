"""Reads the inputs of commands: programs, NumPy files and safetensors; ``-`` is standard input."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import IO, Any

import click

from plugrt.base import files
from plugrt.errors import DataLoss, FileRefused

READABLE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
"""The type of an argument that names a file to read."""
READABLE_MODEL = click.Path(exists=True, allow_dash=True, path_type=Path)
"""The type of an argument that names a file, or the folder of a model."""
_STANDARD_INPUT = "/dev/stdin"
_MAX_BYTES = 2 * 2**30
_MAGIC = (b"\x93NUMPY", b"PK")


def read_program_argument(path: Path) -> Path | bytes:
    """Returns the argument for `plugrt.load_program`: the path, or the content of stdin."""
    from plugrt.programs.loading import read_contents

    return read_contents(_STANDARD_INPUT) if str(path) == "-" else path


class NamedFile(click.Path):
    """The type of an option ``[NAME=]FILE``: the name, or "", and the path."""

    def __init__(self) -> None:
        super().__init__(exists=True, dir_okay=False, allow_dash=True, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the name and the path; a file with ``=`` in its name is a file."""
        if isinstance(value, tuple):  # converted already
            return value
        name, equals, file = str(value).partition("=")
        if not equals or Path(str(value)).exists():
            name, file = "", value
        return name, super().convert(file, param, ctx)


def read_arrays(path: Path) -> dict[str, Any]:
    """Returns the arrays of a file by name, in its order; the array of a ``.npy`` file has no name.

    Raises `click.BadParameter` for a file that is neither NumPy's nor of safetensors, for a path
    that is no regular file, and for an array of Python objects. A pipe may provide 2 GiB at most.
    """
    dash = str(path) == "-"
    title = "standard input" if dash else str(path)
    try:
        number = files.descriptor_in(_STANDARD_INPUT if dash else path)
        if number is not None:
            return _read(io.BytesIO(files.read_descriptor(number, _MAX_BYTES, title)), title)
        with files.open_regular(path) as file:
            return _read(file, title)
    except FileRefused as error:
        raise _make_input_error(f"{error}; save the array as a file") from error


def _read(file: IO[bytes], title: str) -> dict[str, Any]:
    import numpy as np

    begin = file.read(9)
    file.seek(0)
    if begin[8:] == b"{" and not begin.startswith(_MAGIC):
        return _read_safetensors(file.read(_MAX_BYTES), title)
    if not begin.startswith(_MAGIC):
        raise _make_input_error(
            f"{title} is neither a NumPy file nor a safetensors file; "
            "numpy.save(path, array) writes one"
        )
    try:
        loaded = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"": loaded}
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except (MemoryError, OverflowError) as error:
        raise _make_input_error(
            f"{title} states an array that memory cannot hold: {error}"
        ) from error
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        if "allow_pickle" in str(error):
            raise _make_input_error(
                f"{title} contains Python objects; an array of numbers or booleans is needed"
            ) from error
        raise _make_input_error(f"{title} is not a whole NumPy file: {error}") from error


def _read_safetensors(content: bytes, title: str) -> dict[str, Any]:
    from plugrt.wire.safetensors import read_arrays

    try:
        return dict(read_arrays(content))
    except DataLoss as error:
        raise _make_input_error(
            f"{title} is a damaged safetensors file: {error.message}"
        ) from error


def _make_input_error(words: str) -> click.BadParameter:
    return click.BadParameter(words, param_hint="--input")
