"""The checks of ``plugrt doctor``: settings, candidates, the choice, and problems."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from typing import Any

from plugrt.cli import doctor_jax
from plugrt.cli.doctor_child import ask_in_child
from plugrt.errors import ConfigError
from plugrt.plugins import vendors
from plugrt.plugins.discovery import env_paths
from plugrt.plugins.discovery.installed_plugins import names_of_foreign_plugin
from plugrt.plugins.library import LibraryPlugin
from plugrt.plugins.packages import distributions
from plugrt.plugins.packages.description import find_unannounced
from plugrt.plugins.packages.distributions import normalise_name
from plugrt.plugins.record import Record, Source, State
from plugrt.plugins.selection.backends import process_backends
from plugrt.plugins.selection.clients import Backends
from plugrt.plugins.selection.platform_choice import parse_request
from plugrt.processes.run_in_child import Outcome, run_in_child
from plugrt.settings.declarations import Config

_BACKENDS, _MORE, _PROBES = 0.5, 0.1, 0.4
"""The shares of PLUGRT_DOCTOR_SECONDS: to start the backends; to start them again without the
plugins that ended the process; and to try all libraries of the environment."""
_NESTED = 0.6
"""The share of the time for backends that the trial of one library may use."""
_ONE_PROBE = 0.67
"""The share of the time for libraries that one library may use."""
_CURE = f"install the library's package again, or take it out of {env_paths.VARIABLE}"
"""The default cure."""
_FACTS = 0.1
"""The share reserved for packages' facts, whatever the others use."""
_LEAST = 0.3
"""With less time than this, in seconds, a library is not tried."""
PROBE_WORKERS = 8
_NOT_TRIED = "not tried"
"""The state of a check for which there was no time."""


@dataclass
class Examination:
    """The findings. ``problems`` are requests of the user that fail."""

    versions: dict[str, str] = field(default_factory=dict)
    core: str = ""
    """Whether C or Python runs calls of compiled programs, and the reason."""
    settings: list[dict[str, str]] = field(default_factory=list)
    candidates: list[dict[str, object]] = field(default_factory=list)
    chosen: list[str] = field(default_factory=list)
    why: str = ""
    devices: dict[str, int] = field(default_factory=dict)
    hints: list[str] = field(default_factory=list)
    facts: list[dict[str, object]] = field(default_factory=list)
    """Facts about the machine from installed packages: package, name and value."""
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    """The journal: the steps of finding and starting the plugins, in order."""
    elapsed_s: float = 0.0

    @property
    def verdict(self) -> str:
        """The findings in a few words."""
        return "something requested does not work" if self.problems else "all well"

    @property
    def choice(self) -> str:
        """The chosen platform, its number of devices, and the reason."""
        counts = ", ".join(f"{name} (devices: {self.devices[name]})" for name in self.chosen)
        return f"{counts}, because {self.why}"

    def as_dict(self) -> dict[str, object]:
        """Returns the findings as a JSON object."""
        return {"ok": not self.problems, **asdict(self)}


def describe_owner(row: dict[str, object]) -> str:
    """Returns whose candidate a row of `Examination.candidates` is."""
    owner = f"{row['distribution']} {row['version']}".strip()
    return str(owner or row["library"] or row["source"])


def examine(backends: Backends | None = None) -> Examination:
    """Returns the findings; no plugin is imported and no library opened in this process."""
    begin = time.monotonic()
    backends = backends or process_backends()
    found = Examination(versions=_versions())
    _examine_settings(found, backends.config, os.environ)
    _examine_core(found, backends.config)
    if found.problems:
        return found  # a program would also stop at an invalid setting
    seconds = backends.config.doctor_seconds
    records = backends.table.rows
    _examine_backends(found, records, backends.config)
    # After the backends: a library may allow one process at a time.
    libraries = [r for r in records if r.source is Source.ENVIRONMENT and not r.blocked]
    deadline = time.monotonic() + _PROBES * seconds
    with ThreadPoolExecutor(PROBE_WORKERS) as pool:
        probes = pool.map(lambda r: _probe(found, r, backends.config, deadline), libraries)
        for record, probe in zip(libraries, probes, strict=True):
            _merge_probe(found, record, probe)
    _examine_names(found, backends)
    found.candidates += _find_unannounced(found.candidates, backends)
    platforms = parse_request(backends.config.platforms).names
    for row in found.candidates:
        row["jax"] = doctor_jax.explain(row, platforms, backends.table.aliases)
    left = max(begin + seconds - time.monotonic(), _FACTS * seconds)
    found.facts, warnings = ask_in_child(backends.table, left)
    found.warnings += warnings
    found.hints = backends.table.missing_plugins()
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
            row = {"variable": option.env, "value": _format_setting(value), "source": source}
            found.settings.append({**row, "doc": option.doc})
    names = {name for o in declared.values() for name in (o.env, o.also) if name}
    for name in sorted(environ):
        if name.startswith(("JAX_", "PLUGRT_", "PJRT_")) and name not in names:
            close = get_close_matches(name, names, n=1, cutoff=0.88)
            if close:
                found.warnings.append(f"{name} is not known; did you mean {close[0]}?")


def _examine_core(found: Examination, settings: Config) -> None:
    try:
        from plugrt.native.native_core import choose_core

        core, reason = choose_core(settings.core)
    except ConfigError as error:
        if str(error) not in found.problems:
            found.problems.append(str(error))
    else:
        found.core = f"{'c' if core else 'python'} ({reason})"
        if not hasattr(core, "guard"):
            found.core += f"; {_UNCAUGHT}"


_UNCAUGHT = (
    "C++ exceptions of PJRT libraries are not caught, and end the process: that needs the compiled "
    "core, built with a C++ compiler"
)


def _format_setting(value: object) -> str:
    """Returns a setting's value in the form of its environment variable: lists with commas."""
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def _examine_names(found: Examination, backends: Backends) -> None:
    """Warns of options for a plugin that does not exist."""
    known = {row[key] for row in found.candidates for key in ("name", "platform")}
    known |= set(backends.table.aliases)
    for name in sorted(set(backends.config.client_create_options) - known):
        found.warnings.append(f"PLUGRT_CLIENT_CREATE_OPTIONS names {name!r}, which is not a plugin")


def _examine_backends(found: Examination, records: list[Record], settings: Config) -> None:
    """Starts the backends as a program would, and again without a plugin that ends the process."""
    seconds = _BACKENDS * settings.doctor_seconds
    deadline = time.monotonic() + seconds + _MORE * settings.doctor_seconds
    one = min(settings.probe_seconds, _NESTED * seconds)
    environ = {"PLUGRT_PROBE_SECONDS": repr(one)}
    faults: dict[str, dict[str, object]] = {}
    while True:
        left = min(seconds, deadline - time.monotonic())
        outcome = run_in_child("plugrt.cli.doctor_child:examine", None, left, env=environ)
        warnings = [e["warning"] for e in outcome.lines if "warning" in e]
        found.warnings += [w for w in warnings if w not in found.warnings]
        found.steps += [e["step"] for e in outcome.lines if "step" in e]
        done = next((e["done"] for e in outcome.lines if "done" in e), None)
        found.warnings += [f"starting the backends {remark}" for remark in outcome.remarks()]
        culprit = ""
        if done is None or not outcome.succeeded:
            culprit = _blame(found, outcome, faults)
        if done is not None:
            break
        if deadline - time.monotonic() < 1 or not _leave_out(environ, culprit):
            break
    rows = [_make_untried_row(r) for r in records] if done is None else done["rows"]
    found.candidates = [{**row, **faults.get(str(row["key"]), {})} for row in rows]
    if done is None:
        return
    if not faults:
        found.chosen, found.why, found.devices = (
            done["chosen"],
            done.get("why", ""),
            done["devices"],
        )
    found.problems += [e["problem"] for e in outcome.lines if "problem" in e]
    if "error" in done:
        found.problems.append(done["error"])
    for row in done["rows"]:
        # Libraries of the environment are tried separately, later.
        named = row["library"] and row["source"] != Source.ENVIRONMENT
        if named and row["state"] in (State.BROKEN, State.INCOMPATIBLE):
            _add_problem(found, row["name"], row["reason"], f"{row['name']!r}: {row['reason']}")


def _make_untried_row(record: Record) -> dict[str, object]:
    """Returns the row of a candidate that no process has reported on."""
    row = {**record.as_dict(), "key": list(record.identity)}
    if record.state is State.FOUND:
        row |= {"state": _NOT_TRIED, "reason": "the process ended before"}
    return row


def _find_unannounced(
    rows: Sequence[dict[str, Any]], backends: Backends
) -> Iterator[dict[str, object]]:
    """Yields a row for each installed PJRT library that no package announces as a plugin."""
    libraries = [row["library"] for row in rows if row["library"]]
    libraries += vendors.libraries_of([row["name"] for row in rows])
    named = backends.config.pjrt_names_and_library_paths
    taken = {row["name"] for row in rows} | {row["platform"] for row in rows}
    found = find_unannounced([row["distribution"] for row in rows], libraries, backends.table.path)
    for distribution, file in found:
        name, _ = names_of_foreign_plugin(file.stem.removeprefix("lib"))
        if name in taken:  # the variable would hide that plugin
            name = normalise_name(distribution.name).replace("-", "_")
        taken.add(name)
        record = Record(
            name, Source.ENVIRONMENT, distribution.name, distribution.version, library=str(file)
        )
        item = f"{name}:{file}"
        yield {
            **record.as_dict(),
            "key": list(record.identity),
            "state": doctor_jax.NOT_ANNOUNCED,
            "reason": f"no entry point of {distribution.name} announces this library as a plugin",
            "cure": f"{env_paths.VARIABLE}={f'{named},{item}' if named else item} loads it",
        }


def _leave_out(environ: dict[str, str], culprit: str) -> bool:
    """Blocks a plugin in these settings; returns whether any other can be tried."""
    if not culprit:
        return False
    current = {**os.environ, **environ}
    blocked = current.get("PLUGRT_PLUGINS_BLOCK", "")
    environ["PLUGRT_PLUGINS_BLOCK"] = f"{blocked},{culprit}".strip(",")
    asked = [name.strip() for name in current.get("JAX_PLATFORMS", "").split(",") if name.strip()]
    left = [name for name in asked if name != culprit]
    environ["JAX_PLATFORMS"] = ",".join(left)
    return not asked or 0 < len(left) < len(asked)


def _blame(found: Examination, outcome: Outcome, faults: dict[str, dict[str, object]]) -> str:
    """Records which plugin was running when the child ended abnormally; returns its name."""
    done = any("done" in e for e in outcome.lines)
    steps = [e for e in outcome.lines if "step" in e and (done or e.get("of"))]
    step = steps[-1] if steps else {"step": "looking for plugins", "of": None}
    problem = f"the process {outcome.ending} while {step['step']}"
    if done:
        problem = f"the process {outcome.ending} when {step['step']}"
    if outcome.how != "lost" and (last := outcome.last_output()):
        problem += f"; its last output: {last}"
    if step["of"] is None:
        found.problems.append(problem)
        return ""
    name: str = step["of"][1]
    cure = f"PLUGRT_PLUGINS_BLOCK={name} excludes it"
    found.problems.append(f"{problem}; {cure}")
    faults[str(step["of"])] = {"state": str(State.BROKEN), "reason": problem, "cure": cure}
    return name


def _probe(
    found: Examination, record: Record, settings: Config, deadline: float
) -> dict[str, object]:
    """Returns the result of opening a library in a child process."""
    for row in found.candidates:
        if row["key"] == list(record.identity) and row["state"] in (
            State.BROKEN,
            State.INCOMPATIBLE,
        ):
            return {name: row[name] for name in ("state", "reason", "cure")}
    if fault := env_paths.explain_missing(record):
        return {"state": str(State.BROKEN), "reason": fault, "cure": "correct the path"}
    whole = _ONE_PROBE * _PROBES * settings.doctor_seconds
    seconds = min(settings.probe_seconds, whole, deadline - time.monotonic())
    if seconds < _LEAST:
        return {"state": _NOT_TRIED, "reason": "there was no time left to try it", "cure": ""}
    plugin = LibraryPlugin(record.name, record.library, record.options)
    return asdict(plugin.try_in_child(settings, seconds, trial=True))


def _merge_probe(found: Examination, record: Record, probe: dict[str, Any]) -> None:
    bad = probe["state"] != "ok"
    if bad:
        probe["cure"] = probe["cure"] or _CURE
    if bad and record.state is not State.DUPLICATE:
        where = "" if record.library in probe["reason"] else f"{record.library}: "
        problem = f"{record}: {where}{probe['reason']}; {probe['cure']}"
        _add_problem(found, record.name, probe["reason"], problem)
    for remark in probe.get("facts", {}).get("remarks", ()):
        found.warnings.append(f"{record}: {remark}")
    for row in found.candidates:
        if row["key"] == list(record.identity):
            row["probe"] = probe
            if bad and probe["state"] in list(State):
                row.update(state=probe["state"], reason=probe["reason"], cure=probe["cure"])


def _add_problem(found: Examination, name: str, reason: str, problem: str) -> None:
    """Adds a problem instead of its warning, unless the plugin has one with the same reason."""
    found.warnings = [w for w in found.warnings if not (name in w and reason in w)]
    if not any(name in known and reason in known for known in found.problems):
        found.problems.append(problem)
