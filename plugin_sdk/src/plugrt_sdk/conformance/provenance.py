"""`describe_run`: the kit, the plugin, the machine and the command, for a report."""

from __future__ import annotations

import datetime
import hashlib
import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from plugrt.errors import PlugrtError
from plugrt.plugins.packages import distributions
from plugrt_sdk.conformance import registry
from plugrt_sdk.conformance.manifest import manifest_hash
from plugrt_sdk.conformance.target import Target

_BLOCK = 1 << 20


def describe_kit() -> dict[str, Any]:
    """Returns the kit's version and its number of checks."""
    return {
        "distribution": "plugrt-sdk",
        "version": distributions.version("plugrt-sdk") or "",
        "checks": len(registry.checks()),
    }


def describe_kit_for_storage() -> dict[str, Any]:
    """Returns `describe_kit` with `manifest_hash`, which is computed in seconds."""
    return {**describe_kit(), "manifest_sha256": manifest_hash()}


def describe_target(target: Target) -> dict[str, Any]:
    """Describes the tested plugin: distribution and version, or the library with its hash."""
    found: dict[str, Any] = {
        "kind": target.kind, "name": target.name, "options": dict(target.options),
        "topology": target.topology, "topology_options": dict(target.topology_options),
        "distribution": "", "version": "", "entry_point": "", "library": "", "library_sha256": "",
        "api_version": "", "hardware": "",
    }  # fmt: skip
    if target.kind == "plugin":
        record = target.record()
        found |= {
            "distribution": record.distribution, "version": record.version,
            "entry_point": record.value, "library": record.library,
        }  # fmt: skip
    if target.kind == "library":
        found["library"] = target.name
    found |= _ask_plugin(target)
    if found["library"] and Path(found["library"]).is_file():
        found["library_sha256"] = _hash_file(Path(found["library"]))
    return found


def _ask_plugin(target: Target) -> dict[str, Any]:
    """Returns the plugin's own statements; a child process imports it."""
    from plugrt.processes.run_in_child import run_in_child

    argument = {"target": target.as_dict(), "path": sys.path}
    outcome = run_in_child("plugrt_sdk.conformance.provenance:report_plugin", argument, 20)
    keys = ("hardware", "library", "api_version")
    options = [{"options": line["options"]} for line in outcome.lines if "options" in line]
    said = [{key: str(line[key])} for line in outcome.lines for key in keys if key in line]
    return {key: value for fact in (*options, *said) for key, value in fact.items()}


def report_plugin(argument: dict[str, Any], say: Any) -> None:
    """Reports the plugin's options and probe here, its library, and its version of the C API."""
    from plugrt.plugins.library import LibraryPlugin

    sys.path += [folder for folder in argument["path"] if folder not in sys.path]
    target = Target(**argument["target"])
    plugin = target.load()
    say(options={**plugin.conformance_options, **target.options})
    with suppress(PlugrtError):
        say(hardware=plugin.probe().reason)
    if isinstance(plugin, LibraryPlugin):
        with suppress(PlugrtError):
            say(library=plugin.library())
            with plugin.starting():
                say(api_version=".".join(map(str, plugin.open().version)))


def _hash_file(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def describe_machine() -> dict[str, str]:
    """Returns the versions that results depend on, and the machine."""
    packages = ("plugrt", "jaxlib", "numpy", "ml_dtypes")
    return {
        "system": platform.platform(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        **{name: distributions.version(name) or "not installed" for name in packages},
    }


def describe_command(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Returns the command line, the time, and the state of the folder's git checkout."""
    line = ["plugrt", *(sys.argv[1:] if arguments is None else arguments)]
    return {
        "command": shlex.join(line),
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "git": _git_state(),
    }


def _git_state() -> dict[str, Any]:
    """Returns the commit of the current folder and whether it has changes; empty outside of git."""
    commit = _git("rev-parse", "HEAD")
    return {"commit": commit, "dirty": bool(_git("status", "--porcelain"))} if commit else {}


def _git(*arguments: str) -> str:
    try:
        found = subprocess.run(
            ["git", *arguments], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):  # git is not installed
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""
