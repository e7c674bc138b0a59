"""`examine`: the child's side of `probe_library`; loads a library and reports each stage."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

from plugrt.capi.client.create import create_client
from plugrt.capi.loading.library import load_library
from plugrt.capi.probing.process_effects import Effects
from plugrt.capi.probing.trial_computation import STAGES, ProbeResult, check_devices, try_client
from plugrt.errors import (
    HARDWARE_ABSENT,
    PjrtError,
    PluginBroken,
    PluginIncompatible,
    PluginUnavailable,
    Unimplemented,
    describe,
)


def examine(request: dict[str, object], say: Any) -> None:
    """Reports each stage as it begins, the facts found, and the result."""
    stages: list[str] = []

    def begin(stage: str) -> None:
        stages.append(stage)
        say(stage=stage)

    try:
        _examine(request, begin, say)
        verdict = ProbeResult("ok")
    except BaseException as error:  # noqa: BLE001 whatever comes out is the library's doing
        verdict = _verdict(error, STAGES[stages[-1]])
    say(result={k: v for k, v in asdict(verdict).items() if k != "facts"}, stage="end")
    # The library's behaviour at process exit is part of the result.


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
    effects = Effects()
    begin("load")
    library = load_library(request["path"], hints=request["hints"])
    facts: dict[str, object] = {
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
