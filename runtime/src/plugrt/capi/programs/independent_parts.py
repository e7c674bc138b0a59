"""Tells which programs over several devices may be launched on one device after the other.

Those are programs whose parts exchange nothing, and take less time than passing them to threads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_MAX_NANOSECONDS = 10_000
_COSTS = {"flops": 0.3, "transcendentals": 3.0, "bytes accessed": 0.1}
"""Nanoseconds for one of what XLA's cost analysis counts, roughly, on one core."""

# HLO's operations whose result depends on what the other replicas or partitions do; a custom call
# may do anything. The analysis counts one iteration of a loop.
_EXCHANGES = (
    "all-reduce|all-gather|all-to-all|ragged-all-to-all|reduce-scatter|collective-permute|"
    "collective-broadcast|send|recv|infeed|outfeed|custom-call|"
    "rng|rng-get-and-update-state|async|while"
)
_NUMBERS = "replica-id|partition-id"


def _patterns(names: str) -> tuple[re.Pattern[str], re.Pattern[bytes]]:
    """Returns what finds these operations in a program's text, and in its bytes.

    An ``HloInstructionProto`` has its opcode in field 2, with its length before it. Other bytes may
    look the same: such a program is launched on all devices at once, which is right as well.
    """
    return (
        re.compile(rf"\b(?:{names})(?:-start)?\("),
        re.compile(rf"\x12[\x04-\x20](?:{names})(?:-start)?[^a-z-]".encode()),
    )


_TOGETHER = {True: _patterns(_EXCHANGES), False: _patterns(f"{_EXCHANGES}|{_NUMBERS}")}
"""For parts that know their numbers, and for those that do not."""


def is_small(analysis: Mapping[str, Any]) -> bool:
    """Whether a program with this cost analysis takes less time than passing it to a thread."""
    if any(analysis.get(key, 0) < 0 for key in _COSTS):
        return False  # -1 means that the analysis cannot count it
    estimate: float = sum(analysis.get(key, 0) * cost for key, cost in _COSTS.items())
    return estimate <= _MAX_NANOSECONDS


def are_independent(hlo: str | bytes, *, numbered: bool = False) -> bool:
    """Whether the parts of an optimised program can run at any time, in any order.

    It is HLO's text, or the bytes of an ``HloModuleProto``. With ``numbered``, a part that is
    launched by itself still knows its number among the replicas and partitions.
    """
    in_text, in_proto = _TOGETHER[numbered]
    return (in_text.search(hlo) if isinstance(hlo, str) else in_proto.search(hlo)) is None
