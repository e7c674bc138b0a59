"""Where the PJRT library is."""

from __future__ import annotations

import os
from pathlib import Path

FILE = "libpjrt_my_chip.so"
"""The library in this package; it exports GetPjrtApi."""

VARIABLE = "MY_CHIP_LIBRARY_PATH"
"""The environment variable that names another one."""


def find_library() -> str:
    """Returns the path of the library: the one that the variable names, or this package's."""
    named = os.environ.get(VARIABLE)
    path = Path(named) if named else Path(__file__).with_name(FILE)
    if not path.is_file():
        cure = f"correct {VARIABLE}" if named else f"put it there, or set {VARIABLE} to its path"
        raise FileNotFoundError(f"there is no library {path}; {cure}")
    return str(path)
