"""`save_in_child`: a program saved by another process, which has ended."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from plugrt.errors import Unimplemented, describe
from plugrt.processes.run_in_child import run_in_child
from plugrt_sdk.conformance.expect import Mismatch
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.target import Target

_SAVER = f"{__name__}:save"
_SECONDS = 600.0
"""The maximum; the waiting check has its own limit, which ends the child as well."""


def save_in_child(target: Target, text: str) -> bytes:
    """Compiles a program in a child process, and returns the bytes that the plugin saves.

    Raises `Unimplemented` if the plugin does, and `Mismatch` if the process fails.
    """
    argument = {"target": target.as_dict(), "text": text, "path": sys.path}
    outcome = run_in_child(_SAVER, argument, _SECONDS)
    said = {key: value for line in outcome.lines for key, value in line.items()}
    if "refused" in said:
        raise Unimplemented(said["refused"])
    if not outcome.succeeded or "saved" not in said:
        last = said.get("error") or outcome.last_output()
        raise Mismatch(
            "a process that compiles a program, saves it and ends",
            f"the process {outcome.ending}: {last}".rstrip(": "),
        )
    return bytes.fromhex(said["saved"])


def save(argument: Mapping[str, Any], say: Callable[..., None]) -> None:
    """In the child: compiles a program and reports the bytes that the plugin saves."""
    sys.path += [folder for folder in argument["path"] if folder not in sys.path]
    subject = PluginSubject(Target(**argument["target"]))
    try:
        content = subject.compile(argument["text"]).executable.serialize()
    except Unimplemented as error:
        say(refused=describe(error))
    else:
        say(saved=content.hex())
