"""What the processor of this machine can do: machine code runs only where it finds all of that."""

from __future__ import annotations

import hashlib
import platform
from functools import cache

from plugrt import files

_DESCRIPTION = "/proc/cpuinfo"


@cache
def features() -> str:
    """Returns a word for system, architecture and instruction sets, equal where they are equal.

    Machine code that was made for one ends the process (SIGILL) on another. Where the system does
    not list instruction sets, the processor's name stands for them.
    """
    try:
        lines = files.read_text(_DESCRIPTION, errors="replace").splitlines()
    except OSError:  # not Linux
        lines = []
    stated = next((x for x in lines if x.lower().startswith(("flags", "features"))), "")
    sets = sorted(stated.split()) or [platform.processor()]
    digest = hashlib.sha256(" ".join(sets).encode()).hexdigest()[:16]
    return f"{platform.system()}-{platform.machine()}-{digest}"
