"""The address space of this process: its size, and the limit of ``ulimit -v``."""

from __future__ import annotations

import os
import sys


def address_limit() -> int | None:
    """Returns the limit of this process's address space in bytes (``ulimit -v``), None if
    unlimited.
    """
    if sys.platform == "win32":
        return None
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def address_size() -> int:
    """Returns the size of this process's address space in bytes; 0 if it is unknown."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
