"""The launch ids of programs over several devices, by which a library tells launches apart."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator

from plugrt.capi.devices.devices import ClientBase
from plugrt.capi.programs.executable import Executable
from plugrt.errors import PjrtError

_MOST = 0x7FFFFFFF
# Process-wide: an id must differ from the ids of all launches of the process.
_of_process = itertools.count(1)


def launch_ids(
    client: ClientBase, executable: Executable, local_devices: int
) -> Iterator[int] | None:
    """Returns the ids of a program's launches; None for a program on one device.

    The parts of a launch find each other under its id: with 0 for all, those of two launches that
    are under way at once meet, and wait for ever. No other launch of this process has them. Of a
    program over several processes each gives the same, which launch the same programs in the same
    order: they are counted from a number that the program has.
    """
    is_alone = len(client.addressable_devices()) == len(client.devices())
    if is_alone:
        return _fit(_of_process) if local_devices > 1 else None
    parts = executable.num_replicas * executable.num_partitions
    if parts == local_devices:
        return _fit(_of_process) if parts > 1 else None
    try:
        mark = executable.fingerprint()
    except PjrtError:
        mark = executable.name.encode()
    return _fit(itertools.count(zlib.crc32(mark)))


def _fit(numbers: Iterator[int]) -> Iterator[int]:
    """Returns them as ids, which have 31 bits and are not 0, without a function of Python's each.

    Between launches the processor has forgotten all else, so that one takes a microsecond.
    """
    return filter(None, map(_MOST.__and__, numbers))
