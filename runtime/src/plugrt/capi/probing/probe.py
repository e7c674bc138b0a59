"""`probe_library`: tries an unknown library in a child process."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace

from plugrt.capi.probing.trial_computation import STAGES, ProbeResult
from plugrt.interface import OptionValue
from plugrt.processes.run_in_child import Outcome, run_in_child

SECONDS = 20.0


def probe_library(
    path: str | os.PathLike[str],
    timeout: float = SECONDS,
    *,
    options: Mapping[str, OptionValue] | None = None,
    start: bool = True,
    trial: bool = False,
    hints: Mapping[str, str] | None = None,
    env: Mapping[str, str | None] | None = None,
) -> ProbeResult:
    """Loads a library in a child process, starts a client there, and returns how far that went.

    Anything the library does (print, abort, crash, hang, exit, fail to exit) is a result. ``start``
    False stops after the initialisation; ``trial`` goes on to compute something small. ``timeout``
    is in seconds; ``env`` are variables to set for the child, or to remove (None).
    """
    request = {
        "path": os.fspath(path),
        "options": dict(options or {}),
        "start": start,
        "trial": trial,
        "hints": dict(hints or {}),
    }
    began = time.monotonic()
    outcome = run_in_child("plugrt.capi.probing.probe_child:examine", request, timeout, env=env)
    return _read_result(outcome, round((time.monotonic() - began) * 1000))


def _read_result(outcome: Outcome, elapsed: int) -> ProbeResult:
    """Returns the child's result, unless its exit status contradicts it."""
    facts: dict[str, object] = {"elapsed_ms": elapsed}
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
    if said is not None and (outcome.succeeded or said["state"] != "ok"):
        return ProbeResult(facts=facts, **said)
    return replace(_explain_end(outcome, STAGES.get(stage, "before it was loaded")), facts=facts)


def _explain_end(outcome: Outcome, where: str) -> ProbeResult:
    """Returns the result for a library whose process did not end normally."""
    if outcome.how == "lost":
        cure = "PLUGRT_PROBE_LIBRARIES=0 opens libraries without a trial"
        return ProbeResult("broken", f"the process that tried it {outcome.ending}", cure)
    reason, cure = f"its process {outcome.ending} {where}", ""
    if outcome.how == "deadline":
        reason = f"it did not return within {outcome.seconds:.3g} s {where}"
        cure = (
            "PLUGRT_PROBE_SECONDS, in doctor PLUGRT_DOCTOR_SECONDS too, gives it more time, if it "
            "waits for hardware or a network"
        )
    elif outcome.lost_report:
        reason = f"it closed files of its process that are not its own {where}"
    if last := outcome.last_output():
        reason += f"; its last output: {last}"
    return ProbeResult("broken", reason, cure)
