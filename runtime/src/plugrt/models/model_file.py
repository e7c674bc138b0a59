"""Models as files: a folder or a zip file with ``model.json`` and the files that it lists."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from plugrt.base import files
from plugrt.errors import DataLoss, FileRefused, Incompatible, PlugrtError
from plugrt.models.signature import ModelFile, Signature
from plugrt.wire.checked_fields import decode, decode_json, encode, require

MODEL = "model.json"
WEIGHTS = "weights.safetensors"
_FORMAT, _VERSION = "plugrt model", 1
_MOST_BYTES = 2**40
_ZIP = b"PK\3\4"
_ZIP_ERRORS = (
    zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, EOFError,
    struct.error, zlib.error, ValueError, OverflowError, KeyError, MemoryError,
)  # fmt: skip
"""The errors that `zipfile` raises for damaged archives."""


@dataclass(frozen=True, slots=True)
class _Sealed:
    format: str
    version: int
    sha256: str
    """The checksum of the signature as `_canonical` writes it."""
    signature: dict[str, object]


def list_files(contents: Mapping[str, bytes]) -> dict[str, ModelFile]:
    """Returns the sizes and checksums of files."""
    return {
        name: ModelFile(len(content), hashlib.sha256(content).hexdigest())
        for name, content in contents.items()
    }


def write_model(path: Path, signature: Signature, contents: Mapping[str, bytes]) -> None:
    """Writes a model, to a zip file if the path ends in ``.zip``, else to a new folder.

    Raises `FileExistsError` if the folder exists, and the `OSError` of writing.
    """
    stated: Any = encode(signature)
    sealed = _Sealed(_FORMAT, _VERSION, _digest(stated), stated)
    text = json.dumps(encode(sealed), indent=1).encode()
    written = {MODEL: text, **contents}
    if path.suffix == ".zip":
        aside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        try:
            with zipfile.ZipFile(aside, "w", zipfile.ZIP_STORED) as archive:
                for name, content in written.items():
                    archive.writestr(zipfile.ZipInfo(name), content)
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)
        return
    path.mkdir(parents=True)
    for name, content in written.items():
        target = path / name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(content)


def is_model(path: Path) -> bool:
    """Whether a path is a folder or a zip file with a ``model.json``."""
    if path.is_dir():
        return (path / MODEL).is_file()
    try:
        with files.open_regular(path) as file:
            return file.read(4) == _ZIP and MODEL in zipfile.ZipFile(file).namelist()
    except (*_ZIP_ERRORS, OSError):
        return False


def read_model(path: Path) -> tuple[Signature, dict[str, bytes]]:
    """Returns the signature of a model, and the contents of its files by name.

    Raises `DataLoss` for a damaged model, `Incompatible` for other files and versions, and
    `FileNotFoundError`.
    """
    if path.is_dir():
        return _read_listed(path, lambda name, most: files.read_bytes(path / name, most))
    with _open(path) as file:
        if file.read(4) != _ZIP:
            raise Incompatible(
                f"{path} is not a model: a model is a folder or a zip file with {MODEL}, as "
                "`plugrt pack` writes it"
            )
        try:
            with zipfile.ZipFile(file) as archive:
                return _read_listed(path, lambda name, most: _read_member(archive, name, most))
        except PlugrtError:
            raise
        except (*_ZIP_ERRORS, OSError) as error:  # OSError: a position outside of the file
            raise DataLoss(f"the zip file {path} is damaged: {error}") from error


def _open(path: Path) -> BinaryIO:
    try:
        return files.open_regular(path)
    except FileRefused as error:
        raise Incompatible(f"{error}; a model is a folder or a zip file") from error


def _read_member(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    found = archive.getinfo(name)
    if found.compress_type != zipfile.ZIP_STORED or found.file_size > most:
        raise DataLoss(f"{name} is compressed, or holds {found.file_size} bytes of {most}")
    return archive.read(found)


def _read_listed(
    path: Path, read: Callable[[str, int], bytes]
) -> tuple[Signature, dict[str, bytes]]:
    try:
        text = read(MODEL, files.MAX_BYTES)
    except (FileNotFoundError, KeyError) as error:
        raise Incompatible(f"{path} is not a model: it has no {MODEL}") from error
    except FileRefused as error:
        raise DataLoss(str(error)) from error
    try:
        signature = _read_signature(text)
        return signature, {
            name: _read_checked(name, file, read) for name, file in signature.files.items()
        }
    except DataLoss as error:
        raise DataLoss(f"the model {path}: {error.message}") from error
    except Incompatible as error:
        raise Incompatible(f"the model {path}: {error.message}") from error


def _read_signature(text: bytes) -> Signature:
    stated = decode_json(dict[str, object], text, MODEL)
    found = stated.get("format"), stated.get("version")
    if found[0] != _FORMAT:
        raise Incompatible(f"the format of {MODEL} is {found[0]!r:.60}, not {_FORMAT!r}")
    if found[1] != _VERSION:
        raise Incompatible(
            f"it was packed in version {found[1]!r:.20} of the format; this plugrt reads "
            f"{_VERSION}. Fix: pack it again, or load it with the plugrt that packed it"
        )
    sealed: Any = decode(_Sealed, stated, MODEL)
    require(
        _digest(sealed.signature) == sealed.sha256, f"{MODEL} was altered: its checksum differs"
    )
    signature = decode(Signature, sealed.signature, "signature")
    assert isinstance(signature, Signature)
    return signature


def _read_checked(name: str, file: ModelFile, read: Callable[[str, int], bytes]) -> bytes:
    try:
        content = read(name, min(file.size, _MOST_BYTES))
    except (FileNotFoundError, KeyError) as error:
        raise DataLoss(f"the file {name} is missing") from error
    except OSError as error:  # also `FileRefused`
        raise DataLoss(f"the file {name} cannot be read: {error}") from error
    digest = hashlib.sha256(content).hexdigest()
    require(
        (len(content), digest) == (file.size, file.sha256),
        f"the file {name} of {len(content)} bytes was cut off or altered",
    )
    return content


def _digest(signature: object) -> str:
    return hashlib.sha256(
        json.dumps(signature, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()
