"""What commands read: a program, and arrays in NumPy's files; ``-`` is standard input."""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path
from typing import IO, Any

import click

READABLE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
"""The type of an argument that names a file to read."""
_MAGIC = (b"\x93NUMPY", b"PK")


def program_in(path: Path) -> Path | bytes:
    """Returns what `plugrt.load_program` takes: the path, or what standard input holds."""
    return _standard_input().read() if str(path) == "-" else path


def arrays_in(path: Path) -> list[Any]:
    """Returns the array of a ``.npy`` file, or the arrays of an ``.npz`` file in their order.

    Raises `click.BadParameter` for any other file, and for an array of Python objects.
    """
    if str(path) == "-":
        return _read(io.BytesIO(_standard_input().read()), "standard input")
    with path.open("rb") as file:
        return _read(file, str(path))


def _read(file: IO[bytes], title: str) -> list[Any]:
    import numpy as np

    begin = file.read(6)
    file.seek(0)
    if not begin.startswith(_MAGIC):
        raise _refused(f"{title} is not a NumPy file; numpy.save(path, array) writes one")
    try:
        loaded = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return [loaded]
        with loaded:
            return [loaded[name] for name in loaded.files]
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        if "allow_pickle" in str(error):
            raise _refused(f"{title} holds Python objects, which no device takes") from error
        raise _refused(f"{title} is not a whole NumPy file: {error}") from error


def _refused(words: str) -> click.BadParameter:
    return click.BadParameter(words, param_hint="--input")


def _standard_input() -> IO[bytes]:
    return sys.stdin.buffer
