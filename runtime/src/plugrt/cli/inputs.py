"""Reads the inputs of commands: programs and NumPy files; ``-`` is standard input."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import IO

import click

from plugrt.base import files
from plugrt.errors import FileRefused

READABLE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
"""The type of an argument that names a file to read."""
_STANDARD_INPUT = "/dev/stdin"
_MAX_BYTES = 2 * 2**30
_MAGIC = (b"\x93NUMPY", b"PK")


def read_program_argument(path: Path) -> Path | bytes:
    """Returns the argument for `plugrt.load_program`: the path, or the content of stdin."""
    from plugrt.programs.loading import read_contents

    return read_contents(_STANDARD_INPUT) if str(path) == "-" else path


def read_arrays(path: Path) -> list[object]:
    """Returns the array of a ``.npy`` file, or the arrays of an ``.npz`` file in their order.

    Raises `click.BadParameter` for any other file, for what is no regular file, and for an array of
    Python objects. A pipe may provide 2 GiB at most.
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


def _read(file: IO[bytes], title: str) -> list[object]:
    import numpy as np

    begin = file.read(6)
    file.seek(0)
    if not begin.startswith(_MAGIC):
        raise _make_input_error(f"{title} is not a NumPy file; numpy.save(path, array) writes one")
    try:
        loaded = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return [loaded]
        with loaded:
            return [loaded[name] for name in loaded.files]
    except (MemoryError, OverflowError) as error:
        raise _make_input_error(
            f"{title} states an array that memory cannot hold: {error}"
        ) from error
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        if "allow_pickle" in str(error):
            raise _make_input_error(
                f"{title} holds Python objects, which no device takes"
            ) from error
        raise _make_input_error(f"{title} is not a whole NumPy file: {error}") from error


def _make_input_error(words: str) -> click.BadParameter:
    return click.BadParameter(words, param_hint="--input")
