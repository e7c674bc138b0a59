"""`ProbeResult`: the result of `probe_library` and of its child process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

STAGES = {
    "load": "while it was loaded",
    "initialize": "in PJRT_Plugin_Initialize",
    "client": "in PJRT_Client_Create, or while its devices were listed",
    "devices": "while its devices were listed",
    "put": "while numbers were put on a device",
    "read": "while numbers were read from a device",
    "compile": "while a program was compiled",
    "execute": "while a program was run",
    "result": "while a program's result was read",
    "end": "when the process ended, after all had worked",
}
"""How far a probe has come, and the words for a process that ended there."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """``state`` is ``ok``, ``unavailable`` (it works, but not on this machine), ``broken`` or
    ``incompatible``; ``facts`` holds what was learnt until then (version, extensions, devices,
    and in ``remarks`` what it does to its process).
    """

    state: str
    reason: str = ""
    cure: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
