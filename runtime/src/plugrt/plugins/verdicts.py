"""Which libraries were tried in a process of their own and did no harm, remembered on disk.

Trying one takes half a second, and a library does not change between two starts: its path, size,
time of change and options tell.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from plugrt.config import config
from plugrt.interface import OptionValue

_MOST = 256
_FILE = "good-libraries.json"


def cache_folder() -> Path:
    """Returns ``config.cache_dir``, else ``plugrt`` in ``XDG_CACHE_HOME`` or ``~/.cache``."""
    if config.cache_dir:
        return Path(config.cache_dir)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "plugrt"


def fingerprint(library: str, options: Mapping[str, OptionValue]) -> str:
    """Returns what stands for this very file, started with these options."""
    path = os.path.realpath(library)
    found = os.stat(path)
    facts = [path, found.st_size, found.st_mtime_ns, found.st_ino, sorted(options.items())]
    return hashlib.sha256(json.dumps(facts, default=str).encode()).hexdigest()


def is_known_good(library: str, options: Mapping[str, OptionValue]) -> bool:
    """Whether this library was tried before, unchanged, and started."""
    try:
        return fingerprint(library, options) in _read()
    except OSError:
        return False


def remember_good(library: str, options: Mapping[str, OptionValue]) -> None:
    """Notes that this library started. Where the folder cannot be written, it is tried again."""
    with contextlib.suppress(OSError):
        known = [*_read(), fingerprint(library, options)][-_MOST:]
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        # Written aside and moved: another process reads the old file or the new, never half.
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
            json.dump(known, file)
        os.replace(file.name, folder / _FILE)


def _read() -> list[str]:
    try:
        known = json.loads((cache_folder() / _FILE).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return []
    return [k for k in known if isinstance(k, str)] if isinstance(known, list) else []
