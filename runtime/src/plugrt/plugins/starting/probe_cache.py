"""Stores on disk which libraries and plugins passed a trial in a child process.

A trial lasts half a second, and 2 s for a plugin made for JAX, whose child imports jax. A library
is tried again if its path, size, times of change or options have changed, or the limit of this
process's address space.
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
    return facts is not None and passed(facts)


def record_good(library: str, options: Mapping[str, OptionValue] | None) -> None:
    """Records a success for `is_known_good`; does nothing if the file cannot be written."""
    if (facts := _identify(library, options)) is not None:
        record(facts, True)


def _identify(library: str, options: Mapping[str, OptionValue] | None) -> list[object] | None:
    """Returns the cache key of a trial: the path, the file's identity and the options.

    ``options`` are None for a trial that opened the library and did not start it. Returns None,
    so that the library is tried each time, if the file is missing, or if ``library`` is a name
    without a folder, whose file only the dynamic loader knows.
    """
    path = os.path.realpath(library)
    found = files.identify(path) if os.sep in library else None
    started = "opened only" if options is None else sorted(options.items())
    return None if found is None else [path, found, started]


def passed(facts: object) -> bool:
    """Whether True is recorded for a trial with these facts.

    The file's text is searched: to import json costs each start 2 ms.
    """
    return f'"{_digest(facts)}": true'.encode() in _read()


def recall(facts: object) -> Any:
    """Returns the recorded result of a trial with these facts; None if there is none.

    A cache file that other users could have written is ignored, with one warning.
    """
    return _entries().get(_digest(facts))


def record(facts: object, result: object) -> None:
    """Records a result for `recall`; does nothing if the file cannot be written."""
    import json

    with contextlib.suppress(OSError):
        known = _entries()
        known.pop(key := _digest(facts), None)
        kept = dict([*known.items(), (key, result)][-_MAX_ENTRIES:])
        folder = files.private_folder(cache_folder())
        files.write(os.path.join(folder, _FILE), json.dumps(kept).encode())


def _digest(facts: object) -> str:
    # Not hashlib, which loads OpenSSL, in 3 ms of each start: the file is this user's alone.
    import zlib

    whole = ascii([_TRIAL, address_limit(), facts]).encode()
    return f"{zlib.crc32(whole):08x}{zlib.adler32(whole):08x}{len(whole):x}"


@cache
def _warn(message: str) -> None:
    logger.warning("%s", message)


def _entries() -> dict[str, object]:
    try:
        known = files.parse_json(_read())
    except ValueError:
        return {}
    return known if isinstance(known, dict) else {}


def _read() -> bytes:
    try:
        folder = files.private_folder(cache_folder(), make=False)
        return files.read_bytes(os.path.join(folder, _FILE), own=True)
    except FileRefused as error:
        _warn(f"the saved results of trials in child processes are not used: {error}")
    except OSError:
        pass
    return b""
