"""`save_in_child`: a program as another process saves it, which ends before this returns."""

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
"""At most; the check that waits has a limit of its own, which ends the child, too."""


def save_in_child(target: Target, text: str) -> bytes:
    """Compiles a program in a process of its own and returns the bytes that the plugin saves.

    Raises `Unimplemented` where the plugin does; `Mismatch` where the process does not end well.
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
    """Compiles a program and reports the bytes that the plugin saves, in the child."""
    sys.path += [folder for folder in argument["path"] if folder not in sys.path]
    subject = PluginSubject(Target(**argument["target"]))
    try:
        content = subject.compile(argument["text"]).executable.serialize()
    except Unimplemented as error:
        say(refused=describe(error))
    else:
        say(saved=content.hex())
