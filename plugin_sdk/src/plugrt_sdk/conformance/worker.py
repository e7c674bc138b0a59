"""`run_checks`: runs checks in a child process, and reports the start and the end of each.

`plugrt.processes.run_in_child` passes the reports on as they are written, as the journal: if a
check ends the process, its end is missing.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from plugrt.errors import describe
from plugrt.interface import Client
from plugrt_sdk.conformance import registry
from plugrt_sdk.conformance.check import Check
from plugrt_sdk.conformance.judge import is_hardware_absent, judge
from plugrt_sdk.conformance.subject import PluginSubject, slowness
from plugrt_sdk.conformance.target import Target
from plugrt_sdk.conformance.verdict import Result, Verdict

IMPORT = "host.import"
"""The check that imports the plugin: if it hangs, nothing is run that imports the plugin."""

START = "client.create"
"""The check that starts a client: if it fails, no check is run that needs a client."""

LIBRARY = "host.library"
"""The check of the library's file: if it fails, the function table is not looked up."""


_LATE_SECONDS = 0.1
"""The time that a process waits at its end: a library's thread may crash after the last check."""


def run_checks(argument: Mapping[str, Any], say: Callable[..., None]) -> None:
    """Runs the checks named in ``argument`` one after another, each within ``seconds``.

    The process ends without finalising Python unless ``finalise`` is set: a fault there would be
    blamed on the last check. ``path`` is the folder of a plugin that is not installed.
    """
    sys.path += [folder for folder in argument["path"] if folder not in sys.path]
    seed, tolerances, seconds = (argument[key] for key in ("seed", "tolerances", "seconds"))
    subject = PluginSubject(Target(**argument["target"]), seed, tolerances, seconds=seconds)
    subject.launch_seconds = argument["launch_seconds"]
    subject.on_slow = lambda: say(
        within=seconds * slowness(subject.launch_seconds), launch=subject.launch_seconds
    )
    for name in argument["checks"]:
        say(within=seconds * slowness(subject.launch_seconds), begin=name)
        check = registry.find(name)
        result = _start(check, subject, say) if name == START else judge(check, subject)
        say(end=name, result=result.as_dict())
    if "reference" in vars(subject):  # leftover processes are the plugin's from here on
        subject.reference.close()
    time.sleep(_LATE_SECONDS)
    if not argument["finalise"]:
        os._exit(0)


def _start(check: Check, subject: PluginSubject, say: Callable[..., None]) -> Result:
    """Starts the client; missing hardware is its own verdict."""
    begin = time.perf_counter()
    try:
        client = subject.client
    except Exception as error:  # noqa: BLE001  # a plugin may raise anything
        if is_hardware_absent(error):
            seconds = round(time.perf_counter() - begin, 4)
            return Result(Verdict.NO_HARDWARE, got=describe(error), seconds=seconds)
        # The check below meets the error again, and reports it.
        return judge(check, subject)
    result = judge(check, subject)
    if result.verdict is Verdict.PASS:
        # A client that raises here fails the checks of its devices and capabilities.
        with contextlib.suppress(Exception):
            say(facts=describe_client(client))
    return result


def describe_client(client: Client) -> dict[str, Any]:
    """Returns a client's facts for the report: platform, devices, and its declarations."""
    declared = client.capabilities
    return {
        "platform": client.platform,
        "platform_version": client.platform_version,
        "devices": [
            {"id": d.id, "kind": d.kind, "process": d.process_index} for d in client.devices()
        ],
        "attributes": {name: _plain(value) for name, value in client.attributes.items()},
        "capabilities": {name: value for name, (value, _) in declared.sentences().items()},
        "dtypes": sorted(declared.dtypes),
    }


def _plain(value: object) -> object:
    return value if isinstance(value, str | int | float | bool) else str(value)
