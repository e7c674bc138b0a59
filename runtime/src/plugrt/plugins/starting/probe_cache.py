"""Remembers on disk which libraries passed a trial in a child process.

A trial takes half a second. A library is tried again if its path, size, times of change or options
have changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from plugrt.base import files
from plugrt.errors import FileRefused
from plugrt.interface import OptionValue
from plugrt.plugins.log import logger
from plugrt.settings.declarations import config

_MAX_ENTRIES = 256
_FILE = "good-libraries.json"
_TRIAL = 2
"""The version of the trial; a new number makes every library be tried again."""


def cache_folder() -> Path:
    """Returns ``config.cache_dir``, else ``plugrt`` in ``XDG_CACHE_HOME`` or ``~/.cache``."""
    if config.cache_dir:
        return Path(config.cache_dir)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "plugrt"


def fingerprint(library: str, options: Mapping[str, OptionValue] | None) -> str:
    """Returns a digest of this file and the options it was started with; None: only opened.

    Raises `OSError` for a file that is not there, and for a name without a folder: only the dynamic
    loader knows its file, so that such a library is tried each time.
    """
    if os.sep not in library:
        raise FileNotFoundError(library)
    path = os.path.realpath(library)
    found = os.stat(path)
    times = found.st_mtime_ns, found.st_ctime_ns
    facts = [_TRIAL, path, found.st_size, *times, found.st_ino]
    facts.append("opened only" if options is None else sorted(options.items()))
    return hashlib.sha256(json.dumps(facts, default=str).encode()).hexdigest()


def is_known_good(library: str, options: Mapping[str, OptionValue] | None) -> bool:
    """Whether this library, unchanged, started before with these options (None: was opened).

    A cache file that other users could have written is ignored, with one warning.
    """
    try:
        return fingerprint(library, options) in _read()
    except FileRefused as error:
        _warn(f"what is remembered of libraries that were tried is not used: {error}")
        return False
    except OSError:
        return False


@cache
def _warn(message: str) -> None:
    logger.warning("%s", message)


def record_good(library: str, options: Mapping[str, OptionValue] | None) -> None:
    """Records what `is_known_good` answers; does nothing if the file cannot be written."""
    with contextlib.suppress(OSError):
        known = [*_read_entries(), fingerprint(library, options)][-_MAX_ENTRIES:]
        files.write(files.private_folder(cache_folder()) / _FILE, json.dumps(known).encode())


def _read_entries() -> list[str]:
    """Returns the file's entries; none if the file is refused: it will be overwritten."""
    try:
        return _read()
    except FileRefused:
        return []


def _read() -> list[str]:
    try:
        folder = files.private_folder(cache_folder(), make=False)
        known = files.read_json(folder / _FILE, own=True)
    except (FileNotFoundError, ValueError):
        return []
    return [k for k in known if isinstance(k, str)] if isinstance(known, list) else []
