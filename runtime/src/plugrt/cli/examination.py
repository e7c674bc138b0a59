"""What ``plugrt doctor`` finds out: settings, candidates, the choice, and what is wrong."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from plugrt.config import Config
from plugrt.errors import ConfigError
from plugrt.plugins import distributions, env_paths, vendors
from plugrt.plugins.backends import process_backends
from plugrt.plugins.clients import Backends
from plugrt.plugins.library import LibraryPlugin
from plugrt.plugins.record import Record, Source, State

CHILD_SECONDS = 15.0
"""How long the backends may take to start."""
MORE_SECONDS = 3.0
"""How long they may take in addition, without the plugins that ended the process."""
PROBE_SECONDS = 12.0
"""How long all libraries of the environment together may take; the whole stays under 30 s."""
PROBE_WORKERS = 8


@dataclass
class Examination:
    """The findings. ``problems`` are what the user asked for and does not work."""

    versions: dict[str, str] = field(default_factory=dict)
    settings: list[dict[str, str]] = field(default_factory=list)
    candidates: list[dict[str, Any]] = field(default_factory=list)
    chosen: list[str] = field(default_factory=list)
    why: str = ""
    devices: dict[str, int] = field(default_factory=dict)
    hints: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    elapsed_s: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Returns all of it as JSON takes it."""
        return {"ok": not self.problems, **asdict(self)}


def examine(backends: Backends | None = None, seconds: float = CHILD_SECONDS) -> Examination:
    """Returns the findings; no plugin is imported and no library opened in this process."""
    begin = time.monotonic()
    backends = backends or process_backends()
    found = Examination(versions=_versions())
    _examine_settings(found, backends.config, os.environ)
    if found.problems:
        return found  # a setting that cannot be read is what a program would stop at, too
    records = backends.table.rows
    _examine_backends(found, records, seconds)
    # After the backends: a library may admit one process at a time.
    libraries = [r for r in records if r.source is Source.ENVIRONMENT and not r.blocked]
    deadline = time.monotonic() + PROBE_SECONDS
    with ThreadPoolExecutor(PROBE_WORKERS) as pool:
        probes = pool.map(lambda r: _probe(r, backends.config, deadline), libraries)
        for record, probe in zip(libraries, probes, strict=True):
            _merge_probe(found, record, probe)
    found.hints = vendors.missing_plugins({r.name for r in records})
    found.elapsed_s = round(time.monotonic() - begin, 3)
    return found


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version(), "machine": platform.platform()}
    for name in ("plugrt", "jaxlib", "jax", "numpy"):
        versions[name] = distributions.version(name) or "not installed"
    return versions


def _examine_settings(found: Examination, settings: Config, environ: Mapping[str, str]) -> None:
    declared = settings.declared()
    for option in declared.values():
        try:
            value, source = settings.lookup(option)
        except ConfigError as error:
            found.problems.append(str(error))
            value, source = environ.get(option.env, ""), "cannot be understood"
        if source != "default":
            row = {"variable": option.env, "value": str(value), "source": source}
            found.settings.append({**row, "doc": option.doc})
            if option.pending:
                found.warnings.append(f"{option.env} is set, but has no effect yet")
    names = {name for o in declared.values() for name in (o.env, o.also) if name}
    for name in sorted(environ):
        if name.startswith(("JAX_", "PLUGRT_", "PJRT_")) and name not in names:
            close = get_close_matches(name, names, n=1, cutoff=0.88)
            if close:
                found.warnings.append(f"{name} is not known; did you mean {close[0]}?")


# --- the backends, in a child process ---------------------------------------------------------


def _examine_backends(found: Examination, records: list[Record], seconds: float) -> None:
    """Starts them as a program would; where a plugin ends the process, then without that plugin."""
    deadline = time.monotonic() + seconds + MORE_SECONDS
    environ = dict(os.environ)
    faults: dict[str, dict[str, Any]] = {}
    while True:
        ended, entries = _run_child(environ, min(seconds, deadline - time.monotonic()))
        warnings = [e["warning"] for e in entries if "warning" in e]
        found.warnings += [w for w in warnings if w not in found.warnings]
        done = next((e["done"] for e in entries if "done" in e), None)
        if done is not None:
            break
        culprit = _blame(found, ended, [e for e in entries if e.get("of")], faults)
        if deadline - time.monotonic() < 1 or not _leave_out(environ, culprit):
            break
    rows = (
        [{**r.as_dict(), "key": list(r.identity)} for r in records]
        if done is None
        else done["rows"]
    )
    found.candidates = [{**row, **faults.get(str(row["key"]), {})} for row in rows]
    if done is None:
        return
    if not faults:
        found.chosen, found.why, found.devices = (
            done["chosen"],
            done.get("why", ""),
            done["devices"],
        )
    if "error" in done:
        found.problems.append(done["error"])
    for row in done["rows"]:
        # Libraries of the environment are tried one by one, later.
        named = row["library"] and row["source"] != Source.ENVIRONMENT
        if named and row["state"] in (State.BROKEN, State.INCOMPATIBLE):
            _add_problem(found, row["name"], row["reason"], f"{row['name']!r}: {row['reason']}")


def _leave_out(environ: dict[str, str], culprit: str) -> bool:
    """Blocks a plugin in these settings; returns whether anything is left to be tried."""
    if not culprit:
        return False
    blocked = environ.get("PLUGRT_PLUGINS_BLOCK", "")
    environ["PLUGRT_PLUGINS_BLOCK"] = f"{blocked},{culprit}".strip(",")
    asked = [name.strip() for name in environ.get("JAX_PLATFORMS", "").split(",") if name.strip()]
    left = [name for name in asked if name != culprit]
    environ["JAX_PLATFORMS"] = ",".join(left)
    return not asked or 0 < len(left) < len(asked)


def _run_child(environ: Mapping[str, str], seconds: float) -> tuple[str, list[dict[str, Any]]]:
    """Runs the examinee; returns in words how it ended, and its journal.

    What it prints goes nowhere.
    """
    with tempfile.TemporaryDirectory(prefix="plugrt-doctor-") as folder:
        journal = Path(folder, "journal.jsonl")
        ended = _wait_for_child(journal, environ, seconds)
        lines = journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
    return ended, [json.loads(line) for line in lines]


def _wait_for_child(journal: Path, environ: Mapping[str, str], seconds: float) -> str:
    command = [sys.executable, "-P", "-m", "plugrt.cli.examinee", str(journal)]
    try:
        done = subprocess.run(
            command, timeout=seconds, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, check=False, env=dict(environ),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"had not ended after {seconds:.3g} s"
    if done.returncode < 0:
        return f"was killed by {signal.Signals(-done.returncode).name}"
    last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
    return " ".join([f"ended with exit code {done.returncode}", *last])


def _blame(
    found: Examination, ended: str, steps: list[dict[str, Any]], faults: dict[str, dict[str, Any]]
) -> str:
    """Notes which plugin was at work when the child ended before its time; returns its name."""
    step = steps[-1] if steps else {"step": "looking for plugins", "of": None}
    problem = f"the process {ended} while {step['step']}"
    found.problems.append(problem)
    if step["of"] is None:
        return ""
    name: str = step["of"][1]
    cure = f"PLUGRT_PLUGINS_BLOCK={name} leaves it out"
    faults[str(step["of"])] = {"state": str(State.BROKEN), "reason": problem, "cure": cure}
    return name


# --- libraries of the environment -------------------------------------------------------------


def _probe(record: Record, settings: Config, deadline: float) -> dict[str, Any]:
    """Returns what opening a library in a process of its own showed."""
    if record.state is State.BROKEN:
        return {"state": str(record.state), "reason": record.reason, "cure": record.cure}
    if fault := env_paths.missing(record):
        return {"state": str(State.BROKEN), "reason": fault, "cure": "correct the path"}
    seconds = min(8.0, deadline - time.monotonic())
    if seconds < 0.5:
        return {"state": "not tried", "reason": "there was no time left to try it", "cure": ""}
    plugin = LibraryPlugin(record.name, record.library, record.options)
    return asdict(plugin.try_apart(settings, seconds))


def _merge_probe(found: Examination, record: Record, probe: dict[str, Any]) -> None:
    bad = probe["state"] != "ok"
    if bad and record.state is not State.DUPLICATE:
        _add_problem(found, record.name, probe["reason"], f"{record}: {probe['reason']}")
    for row in found.candidates:
        if row["key"] == list(record.identity):
            row["probe"] = probe
            if bad and probe["state"] in list(State):
                row.update(state=probe["state"], reason=probe["reason"], cure=probe["cure"])


def _add_problem(found: Examination, name: str, reason: str, problem: str) -> None:
    """Adds a problem, unless another says the same of that plugin already."""
    if not any(name in known and reason in known for known in found.problems):
        found.problems.append(problem)
