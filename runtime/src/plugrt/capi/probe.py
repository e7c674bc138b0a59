"""`probe_library`: what an unknown library does, found out where it can do no harm."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from plugrt.errors import (
    HARDWARE_ABSENT,
    PjrtError,
    PluginBroken,
    PluginIncompatible,
    PluginUnavailable,
    Unimplemented,
    describe,
)
from plugrt.interface import OptionValue
from plugrt.processes.apart import Outcome, run_apart

SECONDS = 20.0
_STAGES = {
    "load": "while it was loaded",
    "initialize": "in PJRT_Plugin_Initialize",
    "client": "in PJRT_Client_Create",
    "devices": "while its devices were listed",
    "put": "while numbers were put on a device",
    "read": "while numbers were read from a device",
    "compile": "while a program was compiled",
    "execute": "while a program was run",
    "result": "while a program's result was read",
    "end": "when the process ended, after all had worked",
}


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


def probe_library(
    path: str | os.PathLike[str],
    timeout: float = SECONDS,
    *,
    options: Mapping[str, OptionValue] | None = None,
    start: bool = True,
    trial: bool = False,
    hints: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
) -> ProbeResult:
    """Loads a library in a child process, starts a client there, and returns how far that went.

    Whatever the library does (print, abort, crash, hang, leave the process, fail to leave it) is
    a result. ``start`` False stops after the initialisation; ``trial`` goes on to compute
    something small. ``timeout`` is in seconds; ``env`` are variables to set for the child.
    """
    request = {
        "path": os.fspath(path),
        "options": dict(options or {}),
        "start": start,
        "trial": trial,
        "hints": dict(hints or {}),
    }
    began = time.monotonic()
    outcome = run_apart("plugrt.capi.probe:examine", request, timeout, env=env)
    return _judge(outcome, round((time.monotonic() - began) * 1000))


# --- in the parent ----------------------------------------------------------------------------


def _judge(outcome: Outcome, elapsed: int) -> ProbeResult:
    """Returns what the child said, unless the way in which it ended says otherwise."""
    facts: dict[str, Any] = {"elapsed_ms": elapsed}
    remarks: list[str] = []
    stage, said = "", None
    for line in outcome.lines:
        stage = line.get("stage", stage)
        learnt = line.get("facts", {})
        remarks += learnt.pop("remarks", [])
        facts.update(learnt)
        said = line.get("result", said)
    remarks += [f"it {remark}" for remark in outcome.remarks()]
    if remarks:
        facts["remarks"] = remarks
    if said is not None and (outcome.well or said["state"] != "ok"):
        return ProbeResult(facts=facts, **said)
    return replace(_ended(outcome, _STAGES.get(stage, "before it was loaded")), facts=facts)


def _ended(outcome: Outcome, where: str) -> ProbeResult:
    """Returns the verdict on a library whose process did not end as it should."""
    if outcome.how == "lost":
        cure = "PLUGRT_PROBE_LIBRARIES=0 opens libraries without a trial"
        return ProbeResult("broken", f"the process that tried it {outcome.words}", cure)
    reason, cure = f"its process {outcome.words} {where}", ""
    if outcome.how == "deadline":
        reason = f"it did not come back within {outcome.seconds:.3g} s {where}"
        cure = "PLUGRT_PROBE_SECONDS gives it more time, if it waits for hardware or a network"
    elif outcome.lost_report:
        reason = f"it closed files of its process that are not its own {where}"
    if last := outcome.last_words():
        reason += f"; its last words: {last}"
    return ProbeResult("broken", reason, cure)


# --- in the child -----------------------------------------------------------------------------


def examine(request: dict[str, Any], say: Any) -> None:
    """Says each stage as it begins, what was learnt, and the verdict."""
    stages: list[str] = []

    def begin(stage: str) -> None:
        stages.append(stage)
        say(stage=stage)

    try:
        _examine(request, begin, say)
        verdict = ProbeResult("ok")
    except BaseException as error:  # noqa: BLE001 whatever comes out is the library's doing
        verdict = _verdict(error, _STAGES[stages[-1]])
    say(result={k: v for k, v in asdict(verdict).items() if k != "facts"}, stage="end")
    # What the library does when the process ends is part of the answer.


def _verdict(error: BaseException, where: str) -> ProbeResult:
    if isinstance(error, PluginIncompatible):
        return ProbeResult("incompatible", str(error))
    if isinstance(error, PluginUnavailable):
        return ProbeResult("unavailable", str(error))
    if isinstance(error, PluginBroken):
        return ProbeResult("broken", str(error))
    if isinstance(error, PjrtError):
        if isinstance(error, HARDWARE_ABSENT):
            return ProbeResult("unavailable", str(error))
        return ProbeResult("broken", f"{error} ({where})")
    return ProbeResult("broken", f"{describe(error)} ({where})")


def _examine(request: dict[str, Any], begin: Any, say: Any) -> None:
    from plugrt.capi.create import create_client
    from plugrt.capi.effects import Effects
    from plugrt.capi.library import load_library
    from plugrt.trial import check_devices, try_client

    effects = Effects()
    begin("load")
    library = load_library(request["path"], hints=request["hints"])
    facts: dict[str, Any] = {
        "pjrt_api_version": f"{library.version[0]}.{library.version[1]}",
        "struct_size": int(library.api.struct_size),
        "extensions": sorted(library.extensions),
        "missing_functions": sorted(library.missing),
    }
    say(facts=facts)
    begin("initialize")
    library.initialize()
    say(facts={"attributes": dict(library.attributes())})
    if not request["start"]:
        return
    begin("client")
    client = create_client(library, request["options"], name=os.path.basename(library.path))
    begin("devices")
    devices = [
        {"id": d.id, "kind": d.kind, "process_index": d.process_index} for d in client.devices()
    ]
    say(
        facts={
            "platform": client.platform,
            "platform_version": client.platform_version,
            "devices": devices,
        }
    )
    check_devices(client)
    if request["trial"]:
        try:
            try_client(client, begin)
        except Unimplemented as error:
            say(facts={"remarks": [f"it cannot run programs: {error}"]})
    say(facts={"remarks": effects.remarks()})
    effects.check_output()
