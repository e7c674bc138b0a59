"""Remembers on disk which libraries and which code passed a trial in a child process.

Each costs half a second, for a plugin made for JAX 2 s: its child imports jax. A library is tried
again if its path, size, times of change or options have changed, or the limit of this process's
address space.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from plugrt.base import files
from plugrt.errors import FileRefused
from plugrt.interface import OptionValue
from plugrt.plugins.log import logger
from plugrt.processes.address_space import address_limit
from plugrt.settings.declarations import config

_MAX_ENTRIES = 256
_FILE = "trials.json"
_TRIAL = 4
"""The version of the trial; a new number makes every library be tried again."""


def cache_folder() -> str:
    """Returns ``config.cache_dir``, else ``plugrt`` in ``XDG_CACHE_HOME`` or ``~/.cache``."""
    if config.cache_dir:
        return config.cache_dir
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "plugrt")


def is_known_good(library: str, options: Mapping[str, OptionValue] | None) -> bool:
    """Whether this library, unchanged, started before with these options (None: was opened)."""
    facts = _identify(library, options)
    return facts is not None and recall(facts) is True


def record_good(library: str, options: Mapping[str, OptionValue] | None) -> None:
    """Records what `is_known_good` answers; does nothing if the file cannot be written."""
    if (facts := _identify(library, options)) is not None:
        record(facts, True)


def _identify(library: str, options: Mapping[str, OptionValue] | None) -> list[object] | None:
    """Returns the facts of this file and the options it was started with; None: only opened.

    Returns None for a file that is not there, and for a name without a folder: only the dynamic
    loader knows its file, so such a library is tried each time.
    """
    path = os.path.realpath(library)
    found = files.identify(path) if os.sep in library else None
    started = "opened only" if options is None else sorted(options.items())
    return None if found is None else [path, found, started]


def recall(facts: object) -> Any:
    """Returns the recorded result of a trial with these facts; None if there is none.

    A cache file that other users could have written is ignored, with one warning.
    """
    try:
        return _read().get(_digest(facts))
    except FileRefused as error:
        _warn(f"what is remembered of trials in a child process is not used: {error}")
    except OSError:
        pass
    return None


def record(facts: object, result: object) -> None:
    """Records what `recall` returns; does nothing if the file cannot be written."""
    import json

    with contextlib.suppress(OSError):
        known = _read_entries()
        known.pop(key := _digest(facts), None)
        kept = dict([*known.items(), (key, result)][-_MAX_ENTRIES:])
        folder = files.private_folder(cache_folder())
        files.write(os.path.join(folder, _FILE), json.dumps(kept).encode())


def _digest(facts: object) -> str:
    # Not hashlib, which loads OpenSSL, in 3 ms of each start: the file is this user's alone.
    import json
    import zlib

    whole = json.dumps([_TRIAL, address_limit(), facts], default=str).encode()
    return f"{zlib.crc32(whole):08x}{zlib.adler32(whole):08x}{len(whole):x}"


@cache
def _warn(message: str) -> None:
    logger.warning("%s", message)


def _read_entries() -> dict[str, object]:
    """Returns the file's entries; none if the file is refused: it will be overwritten."""
    try:
        return _read()
    except FileRefused:
        return {}


def _read() -> dict[str, object]:
    try:
        folder = files.private_folder(cache_folder(), make=False)
        known = files.read_json(os.path.join(folder, _FILE), own=True)
    except (FileNotFoundError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
