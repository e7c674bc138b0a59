"""`launches_one_by_one`: whether the parts of a program are launched one device after the other."""

from __future__ import annotations

from collections.abc import Sequence

from plugrt import hlo_proto
from plugrt.capi.devices import ClientBase, Device
from plugrt.capi.executable import Executable
from plugrt.errors import PjrtError
from plugrt.independent_parts import are_independent, is_small

_PLATFORMS = frozenset({"cpu"})
"""Whose launch on several devices passes each part to a thread, which takes longer than a small
part itself: XLA's CPU client, 100 to 300 µs instead of 30 to 50 for four devices."""


def launches_one_by_one(
    client: ClientBase, executable: Executable, devices: Sequence[Device]
) -> bool:
    """Whether that is right, and faster.

    It is where the parts, all of them in this process, exchange nothing and have little to do.
    """
    parts = executable.num_replicas * executable.num_partitions
    if client.platform not in _PLATFORMS or len(devices) != parts or parts == 1:
        return False
    try:
        if not is_small(executable.cost_analysis()):
            return False
        return are_independent(bytes(hlo_proto.read_module(executable.optimized_program())))
    except (PjrtError, ValueError):
        return False  # launching on all devices at once is correct, only slower
