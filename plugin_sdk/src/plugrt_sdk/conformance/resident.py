"""Memory, objects, descriptors, threads and maps of this process, for checks of leaks."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from collections.abc import Mapping


def resident_bytes() -> int:
    """Returns the process's resident memory in bytes; without /proc, its peak."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def settled_bytes() -> int:
    """Returns the resident memory after the C library has returned free memory to the system.

    Otherwise a leak could fill that free memory unseen. Only glibc can return it.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(ctypes.c_size_t(0))
    return resident_bytes()


class _MallInfo(ctypes.Structure):
    """glibc's ``struct mallinfo2``."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks",
                     "uordblks", "fordblks", "keepcost")
    )  # fmt: skip


def heap_bytes() -> int:
    """Returns the bytes that ``malloc`` has allocated and not freed; 0 without glibc 2.33."""
    measure = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if measure is None:
        return 0
    measure.restype = _MallInfo
    found = measure()
    return int(found.uordblks + found.hblkhd)


def count_held() -> Mapping[str, int]:
    """Returns bytes of memory and numbers of objects, descriptors, threads and maps, by name.

    The heap is exact if the library uses glibc's allocator; resident memory counts whole pages. The
    numbers of descriptors, threads and maps are 0 without /proc.
    """
    found = {
        "bytes of the heap": heap_bytes(),
        "bytes of resident memory": settled_bytes(),
        "Python objects": sys.getallocatedblocks(),
    }
    for what, folder in (("descriptors", "fd"), ("threads", "task")):
        try:
            found[what] = len(os.listdir(f"/proc/self/{folder}"))
        except OSError:
            found[what] = 0
    try:
        with open("/proc/self/maps", "rb") as file:
            found["maps"] = sum(1 for _ in file)
    except OSError:
        found["maps"] = 0
    return found


def available_bytes() -> int:
    """Returns the memory that new allocations can use, as Linux estimates it; 0 elsewhere."""
    try:
        with open("/proc/meminfo") as file:
            sizes = dict(line.split(":") for line in file)
        return int(sizes["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError):
        return 0
