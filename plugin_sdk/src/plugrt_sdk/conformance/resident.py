"""`resident_bytes`: the memory that this process takes, for checks of leaks."""

from __future__ import annotations

import resource


def resident_bytes() -> int:
    """Returns the process's resident memory; where there is no /proc, its peak."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
