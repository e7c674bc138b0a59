"""`make_report`: a run as a JSON object, with its level."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from plugrt.interface import OptionValue
from plugrt_sdk.conformance import registry
from plugrt_sdk.conformance.check import Check, Level
from plugrt_sdk.conformance.runner import Runner
from plugrt_sdk.conformance.target import Target
from plugrt_sdk.conformance.verdict import WARNED, Result, Verdict
from plugrt_sdk.conformance.waivers import Waivers

FORMAT = 2
"""The version of the report's format. Keys are added, never changed. Since version 2, rows of
checks that passed, or were not tried, omit the check's own texts (`plugrt conform --list
--json`)."""
SHOWN_BY: Mapping[Level, str] = {Level.SCALES: "scales.replicas"}
"""The check that must PASS for each level. A client of one device refuses each launch on two, which
would otherwise grant level 4 to a client that nobody has seen scale."""


def make_report(
    runner: Runner,
    results: Mapping[str, Result],
    waivers: Waivers,
    facts: Mapping[str, Any],
    *,
    every: bool = True,
) -> dict[str, Any]:
    """Returns the report of a run.

    ``results`` are of the checks that ran, waivers applied; all others are NOT-RUN. ``facts`` are
    the results of `plugrt_sdk.conformance.provenance`, by name. Unless ``every`` is set only the
    checks that ran have rows, which the terminal's report needs.
    """
    rest = Result(Verdict.NOT_RUN, got="it was not selected")
    whole = {name: results.get(name, rest) for name in registry.checks()}
    return {
        "format": FORMAT,
        **facts,
        "settings": {
            "seed": runner.seed, "seconds_per_check": runner.seconds, "jobs": runner.jobs,
            "tolerances_ulp": dict(waivers.tolerances), "waivers": waivers.path,
        },
        "client": runner.facts,
        "notes": [*runner.notes.values(), *_warn(whole)],
        **grant(whole),
        "checks": [
            make_row(registry.find(name), result, runner, waivers)
            for name, result in whole.items() if every or result is not rest
        ],
    }  # fmt: skip


def _warn(results: Mapping[str, Result]) -> Iterator[str]:
    """Yields a note that names the passed checks with a warning."""
    names = [
        k for k, r in results.items() if r.verdict is Verdict.PASS and r.got.startswith(WARNED)
    ]
    if names:
        yield (
            f"{WARNED}: mistakes of the caller had another code than INVALID_ARGUMENT, which is "
            f"no fault where XLA's own libraries give another one: {', '.join(names)}"
        )


def grant(results: Mapping[str, Result]) -> dict[str, Any]:
    """Returns the granted level, None below 0, and counts of verdicts in all and by level.

    A level needs PASS or REFUSED of its checks and of those of all lower levels, except advice
    (`Check.counts_for_level`), and the PASS of the check in `SHOWN_BY`: if only this is missing,
    ``not_shown`` says so. Waived checks do not prevent it, but are counted and named with it.
    ``level_without_table`` is the level without the checks of the raw function table.
    ``level_rests_on`` counts the level's checks and the refused ones among them.
    """
    checks = registry.checks()
    by_level: dict[Level, dict[str, Result]] = {level: {} for level in Level}
    for name, result in results.items():
        by_level[checks[name].level][name] = result
    reached, not_shown, counted = _find_level(by_level, results)
    without_table, *_ = _find_level(by_level, results, table=False)
    return {
        "level": reached,
        "level_waivers": sum(r.verdict is Verdict.WAIVED for r in counted),
        "level_without_table": without_table,
        "level_rests_on": {
            "checks": len(counted), "refused": sum(r.verdict is Verdict.REFUSED for r in counted)
        },
        "not_shown": not_shown,
        "counts": _count(results.values()),
        "counts_of_levels": {
            str(int(level)): _count(found.values()) for level, found in by_level.items()
        },
    }  # fmt: skip


def _find_level(
    by_level: Mapping[Level, Mapping[str, Result]], results: Mapping[str, Result], *,
    table: bool = True,
) -> tuple[int | None, str, list[Result]]:  # fmt: skip
    """Returns the level, why the next one was not shown, and the results that it rests on."""
    checks = registry.checks()
    reached, counted = None, list[Result]()
    for level, found in by_level.items():
        of_level = [
            r for name, r in found.items()
            if r.applies and checks[name].counts_for_level(table=table)
        ]  # fmt: skip
        if not all(r.verdict.is_good or r.verdict is Verdict.WAIVED for r in of_level):
            break
        if level in SHOWN_BY and results[SHOWN_BY[level]].verdict is not Verdict.PASS:
            return reached, _describe_not_shown(level, results[SHOWN_BY[level]]), counted
        reached = int(level)
        counted += of_level
    return reached, "", counted


def _count(results: Iterable[Result]) -> dict[str, int]:
    counted = Counter([result.verdict for result in results])
    return {str(verdict): counted[verdict] for verdict in Verdict}


def _describe_not_shown(level: Level, found: Result) -> str:
    """Returns why a level is not granted although none of its checks fails."""
    return (
        f"Level {int(level)} ({level.name.capitalize()}) was not seen: nothing of it is wrong, but "
        f"{SHOWN_BY[level]} is {found.verdict} ({found.got}) and not PASS. A create option may "
        "give the client more devices (--option)."
    )


def describe_level(report: Mapping[str, Any]) -> str:
    """Formats a level as ``level 2 (Computes) with 1 waiver``."""
    if report["level"] is None:
        return "no level"
    words = f"level {report['level']} ({Level(report['level']).name.capitalize()})"
    count = report["level_waivers"]
    return f"{words} with {count} waiver{'s' * (count > 1)}" if count else words


def describe_basis(report: Mapping[str, Any]) -> str:
    """Formats what a level rests on, and the level without the raw function table's checks.

    Empty without a level.
    """
    without, rests = report["level_without_table"], report["level_rests_on"]
    if without is None:
        return ""
    name = f"level {without} ({Level(without).name.capitalize()})"
    said = f"It rests on {rests['checks']} checks; {rests['refused']} of them were refused."
    return f"{said if rests['checks'] else ''} Without the raw function table's checks: {name}."


def describe_tolerances(report: Mapping[str, Any]) -> str:
    """Formats the tolerances that a run was allowed; empty if there are none."""
    tolerances = report["settings"]["tolerances_ulp"]
    return ", ".join(f"{dtype} {ulps} ulp" for dtype, ulps in tolerances.items())


def describe_provenance(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields lines that state kit, plugin, devices, machine and command of a report."""
    plugin, kit, git = report["plugin"], report["kit"], report["run"]["git"]
    yield "kit", f"plugrt-sdk {kit['version']}, manifest {kit['manifest_sha256']}"
    owner = plugin["distribution"] or plugin["name"]
    yield "plugin", f"{owner} {plugin['version']} {plugin['entry_point']}".strip()
    if plugin["library"]:
        yield "library", f"{plugin['library']} (SHA-256 {plugin['library_sha256']})"
    if plugin["api_version"]:
        yield "PJRT C API", plugin["api_version"]
    if plugin["hardware"] and plugin["kind"] != "library":
        yield "hardware", plugin["hardware"]
    if "platform" in report["client"]:
        yield "platform", "{platform} {platform_version}".format(**report["client"])
    for device in report["client"].get("devices", ()):
        yield "device", f"{device['id']}: {device['kind']}"
    if tolerances := describe_tolerances(report):
        yield "tolerances declared", tolerances
    yield "seed", str(report["settings"]["seed"])
    yield "machine", ", ".join(f"{name} {value}" for name, value in report["machine"].items())
    yield "command", f"{report['run']['command']} at {report['run']['started']}"
    if git:
        yield "commit", f"{git['commit']}{', changed' if git['dirty'] else ''}"


def make_row(check: Check, result: Result, runner: Runner, waivers: Waivers) -> dict[str, Any]:
    """Returns a report's row for one check."""
    waiver = waivers.waivers.get(check.id)
    return {
        **describe_check(check), **result.as_dict(), "verdict": str(result.verdict),
        "reproduce": reproduce(runner.target, check.id, runner.seed),
        "waiver": waiver.as_dict() if waiver else None,
    }  # fmt: skip


def describe_check(check: Check) -> dict[str, Any]:
    """Returns a check's own declarations, as JSON."""
    return {
        "id": check.id, "title": check.title, "level": int(check.level), "needs": str(check.needs),
        "capability": check.capability, "rests_on": check.rests_on, "why": check.why,
        "demanded_by": str(check.demand),
    }  # fmt: skip


def reproduce(target: Target, name: str, seed: int) -> str:
    """Returns the command line that runs one check with the same options."""
    options = _as_flags("--option", target.options)
    options += [f"--topology={target.topology}"] if target.topology else []
    options += _as_flags("--topology-option", target.topology_options)
    seeded = [f"--seed={seed}"] if seed else []
    return shlex.join(["plugrt", "conform", target.name, f"--check={name}", *options, *seeded])


def _as_flags(flag: str, options: Mapping[str, OptionValue]) -> list[str]:
    # str() of a boolean would be read as a text.
    return [
        f"{flag}={key}={str(value).lower() if isinstance(value, bool) else value}"
        for key, value in options.items()
    ]
