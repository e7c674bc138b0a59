"""`probe_library`: what an unknown library does, found out where it can do no harm."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from plugrt.errors import HARDWARE_ABSENT, PluginBroken, PluginIncompatible, PlugrtError
from plugrt.interface import OptionValue

_STAGES = {
    "load": "while it was loaded",
    "initialize": "in PJRT_Plugin_Initialize",
    "client": "in PJRT_Client_Create",
    "describe": "while its devices were listed",
}
_TAIL = 400


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """``state`` is ``ok``, ``unavailable`` (it works, but not on this machine), ``broken`` or
    ``incompatible``; ``facts`` holds what was learnt until then (version, extensions, devices…).
    """

    state: str
    reason: str = ""
    cure: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


def probe_library(
    path: str | os.PathLike[str],
    timeout: float = 20.0,
    *,
    options: Mapping[str, OptionValue] | None = None,
    start: bool = True,
    hints: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
) -> ProbeResult:
    """Loads a library in a child process, starts a client there, and returns how far that went.

    Whatever the library does (print, abort, crash, hang, leave the process) is a result.
    ``start`` False stops after the initialisation. ``timeout`` is in seconds; ``env`` are
    variables to set for the child.
    """
    request = {
        "path": os.fspath(path),
        "options": dict(options or {}),
        "start": start,
        "hints": dict(hints or {}),
    }
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="plugrt-probe-") as folder:
        report = Path(folder) / "report.jsonl"
        errors = Path(folder) / "stderr"
        with errors.open("wb") as sink:
            child = subprocess.Popen(
                [sys.executable, "-P", "-c", "from plugrt.capi.probe import main; main()",
                 str(report), json.dumps(request)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=sink,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )  # fmt: skip
            try:
                code: int | None = child.wait(timeout)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                _end(child)
        lines = _read(report)
        noise = errors.read_text(errors="replace").strip()
    return _judge(lines, code, noise, timeout, round((time.monotonic() - began) * 1000))


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ends the child and what it started; it leads a session of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _read(report: Path) -> list[dict[str, Any]]:
    if not report.exists():
        return []
    found = []
    for line in report.read_text().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:  # The child was ended within a line.
            break
    return found


def _judge(
    lines: list[dict[str, Any]], code: int | None, noise: str, timeout: float, elapsed: int
) -> ProbeResult:
    facts: dict[str, Any] = {"elapsed_ms": elapsed}
    stage = ""
    for line in lines:
        stage = line.get("stage", stage)
        facts.update(line.get("facts", {}))
        if "result" in line:
            return ProbeResult(facts=facts, **line["result"])
    where = _STAGES.get(stage, "before it was loaded")
    if code is None:
        return ProbeResult(
            "broken",
            f"the library did not come back within {timeout:g} s {where}",
            "a longer time limit may help if it waits for hardware or a network",
            facts,
        )
    if code < 0:
        how = f"ended the process with {signal.Signals(-code).name}"
    else:
        how = f"ended the process with exit code {code}"
    last = f"; its last words: {noise[-_TAIL:]}" if noise else ""
    return ProbeResult("broken", f"the library {how} {where}{last}", "", facts)


def main() -> None:
    """The child: writes one JSON line for each stage and one for the result."""
    report, request = sys.argv[1], json.loads(sys.argv[2])
    with open(report, "a", buffering=1) as sink:

        def say(**line: Any) -> None:
            sink.write(json.dumps(line) + "\n")
            sink.flush()

        try:
            _examine(request, say)
            result = ProbeResult("ok")
        except PluginIncompatible as error:
            result = ProbeResult("incompatible", str(error))
        except PluginBroken as error:
            result = ProbeResult("broken", str(error))
        except HARDWARE_ABSENT as error:
            result = ProbeResult("unavailable", str(error))
        except PlugrtError as error:
            result = ProbeResult("broken", str(error))
        say(result={k: v for k, v in asdict(result).items() if k != "facts"})
    # What the library does when the process ends is part of the answer.


def _examine(request: dict[str, Any], say: Any) -> None:
    from plugrt.capi.create import create_client
    from plugrt.capi.library import load_library

    say(stage="load")
    library = load_library(request["path"], hints=request["hints"])
    facts: dict[str, Any] = {
        "pjrt_api_version": f"{library.version[0]}.{library.version[1]}",
        "struct_size": int(library.api.struct_size),
        "extensions": sorted(library.extensions),
        "missing_functions": sorted(library.missing),
    }
    say(facts=facts, stage="initialize")
    library.initialize()
    say(facts={"attributes": dict(library.attributes())})
    if not request["start"]:
        return
    say(stage="client")
    client = create_client(library, request["options"], name=os.path.basename(library.path))
    say(stage="describe")
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
