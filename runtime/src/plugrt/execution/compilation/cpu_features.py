"""`features`: a fingerprint of this machine's instruction sets, for compiled code on disk."""

from __future__ import annotations

import hashlib
import platform
from functools import cache

from plugrt.base import files


@cache
def features(description: files.AnyPath = "/proc/cpuinfo") -> str:
    """Returns a string for system, architecture and instruction sets; equal if all are equal.

    Machine code made for one ends the process (SIGILL) on another. Where the system does not list
    instruction sets, in the file ``description``, the processor's name is used instead.
    """
    try:
        lines = files.read_text(description, errors="replace").splitlines()
    except OSError:  # not Linux
        lines = []
    stated = next((x for x in lines if x.lower().startswith(("flags", "features"))), "")
    sets = sorted(stated.split()) or [platform.processor()]
    digest = hashlib.sha256(" ".join(sets).encode()).hexdigest()[:16]
    return f"{platform.system()}-{platform.machine()}-{digest}"
