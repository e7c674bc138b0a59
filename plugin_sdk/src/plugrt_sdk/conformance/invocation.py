"""`invoke`: runs ``plugrt conform`` with its options."""

from __future__ import annotations

import datetime
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import click

from plugrt.cli.output import get_width, print_json
from plugrt.errors import ConfigError
from plugrt_sdk.conformance import provenance
from plugrt_sdk.conformance.check import Check
from plugrt_sdk.conformance.profiles import missing
from plugrt_sdk.conformance.progress import Progress
from plugrt_sdk.conformance.reports.difference import difference, is_worse
from plugrt_sdk.conformance.reports.findings import name_some
from plugrt_sdk.conformance.reports.outputs import Outputs
from plugrt_sdk.conformance.reports.report import describe_check, make_report
from plugrt_sdk.conformance.reports.stored import read_report
from plugrt_sdk.conformance.reports.terminal import print_report
from plugrt_sdk.conformance.rounds import merge_rounds
from plugrt_sdk.conformance.runner import Runner
from plugrt_sdk.conformance.selection import Stored, select
from plugrt_sdk.conformance.target import Target
from plugrt_sdk.conformance.target_options import read_target
from plugrt_sdk.conformance.verdict import WARNED, Result, Verdict
from plugrt_sdk.conformance.waivers import FILE, Waivers


def invoke(name: str | None, given: Mapping[str, Any]) -> int:
    """Runs the command with its options; returns the exit code.

    Raises `click.UsageError` for an unknown plugin, library, check or report, for an empty
    selection, for an invalid file of waivers, and for a report whose folder does not exist.
    """
    if given["diff"]:
        before, after = given["diff"]
        return _print_difference(before, after, given["as_json"])
    checks = select(given)
    if given["only_list"]:
        return _print_list(checks, given["as_json"])
    if given["export_folder"]:
        return _export(given["export_folder"], checks, given["seed"])
    if not name:
        raise click.UsageError("NAME is missing: the plugin or the library to test.")
    return _conform(name, checks, given)


def _conform(name: str, checks: Sequence[Check], given: Mapping[str, Any]) -> int:
    waivers = _read_waivers(given["waivers_file"])
    (outputs := Outputs.of(given)).require()
    target = read_target(name, given)
    facts = _facts(target)
    settings = {"seed": given["seed"], "tolerances_ulp": dict(waivers.tolerances)}
    stored = Stored.read(given["resume"], facts["plugin"], settings)
    rest = [check for check in checks if check.id not in stored.results]
    runner = Runner(
        target, rest, given["seconds"], given["seed"], given["jobs"], waivers.tolerances,
        Progress(len(rest) * given["repeat"], get_width(sys.stderr)),
        dict(stored.client), {note: note for note in stored.notes if not note.startswith(WARNED)},
    )  # fmt: skip
    begin = time.perf_counter()
    rounds, ended_by = _run_rounds(runner, given["repeat"] if rest else 0)
    found = {check.id: stored.results[check.id] for check in checks if check not in rest}
    found |= merge_rounds(rounds)
    seconds = round(stored.seconds + time.perf_counter() - begin, 3)
    results = {key: waivers.apply(key, result) for key, result in found.items()}
    facts["seconds"] = seconds
    report = make_report(runner, results, waivers, facts, every=False)
    print_report(report, get_width(sys.stdout), err=outputs.fill_stdout)
    unwritten = []
    if outputs:
        facts["kit"] = provenance.describe_kit_for_storage()
        unwritten = [*outputs.write(make_report(runner, results, waivers, facts))]
    for line in unwritten:
        click.echo(f"error: {line}", err=True)
    if ended_by:
        _end_at_once(128 + ended_by)
    for waiver in (stale := waivers.stale(found)):
        click.echo(f"stale waiver: {waiver.id} holds now; take it out of {waivers.path}", err=True)
    needed = missing(given["profile"], results) if given["profile"] else []
    if given["profile"]:
        said = f"lacks {name_some(needed)}" if needed else "has all that it needs"
        click.echo(f"profile {given['profile']}: {said}", err=outputs.fill_stdout)
    code = _exit_code(results, needed)
    return 2 if stale or unwritten else code


def _run_rounds(runner: Runner, count: int) -> tuple[list[dict[str, Result]], int]:
    """Returns the results of each round, and the signal that ended the last one, or 0."""
    rounds: list[dict[str, Result]] = []
    running = runner
    try:
        with _interrupted_by_term():
            for _ in range(count):
                running = replace(runner, _results={})
                rounds.append(running.run())
    except KeyboardInterrupt as interrupt:
        rounds.append(running.results())
        return rounds, signal.SIGTERM if isinstance(interrupt, _Terminated) else signal.SIGINT
    return rounds, 0


def _exit_code(results: Mapping[str, Result], needed: Sequence[str]) -> int:
    """Returns the exit code for results; ``needed`` are a profile's checks that did not pass."""
    untried = (Verdict.NOT_RUN, Verdict.NO_HARDWARE)
    if all(result.verdict in untried for result in results.values()):
        click.echo("no check could be run here, which proves nothing", err=True)
        return 2
    return 1 if needed or any(r.verdict.is_bad for r in results.values()) else 0


class _Terminated(KeyboardInterrupt):
    """The process got SIGTERM."""


@contextmanager
def _interrupted_by_term() -> Iterator[None]:
    """Makes SIGTERM, which cancels a CI job, raise as Ctrl-C does."""

    def interrupt(*_: object) -> NoReturn:
        raise _Terminated

    if threading.current_thread() is not threading.main_thread():  # others get no signals
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


def _end_at_once(code: int) -> NoReturn:
    """Ends this process and its child processes.

    A normal exit would wait for the threads that wait for child processes.
    """
    click.echo("interrupted: the report is of the checks that had ended", err=True)
    sys.stdout.flush()
    os._exit(code)


def _read_waivers(path: Path | None) -> Waivers:
    if path is None and not Path(FILE).exists():
        return Waivers()
    today = datetime.datetime.now(datetime.UTC).date()
    try:
        return Waivers.read(path or Path(FILE), today)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error


def _facts(target: Target) -> dict[str, Any]:
    return {
        "kit": provenance.describe_kit(),
        "plugin": provenance.describe_target(target),
        "machine": provenance.describe_machine(),
        "run": provenance.describe_command(),
    }


def _print_list(checks: Sequence[Check], as_json: bool) -> int:
    if as_json:
        print_json([describe_check(check) for check in checks])
        return 0
    for check in checks:
        click.echo(f"{check.id}  [{int(check.level)}]  {check.title}")
    return 0


def _export(folder: Path, checks: Sequence[Check], seed: int) -> int:
    from plugrt_sdk.conformance.data_export import export  # it makes programs

    progress = Progress(len(checks), get_width(sys.stderr))
    exported = export(folder, checks, seed, lambda c: progress(c, Result(Verdict.PASS)))
    for name, why in exported.code.items():
        click.echo(f"{name} is no data: {why}", err=True)
    click.echo(
        f"{exported.data + exported.table} of {len(checks)} checks are in {folder}: "
        f"{exported.data} as data, {exported.table} of the function table in the runner"
    )
    return 0 if exported.data + exported.table else 2


def _print_difference(before: Path, after: Path, as_json: bool) -> int:
    try:
        reports = [read_report(path) for path in (before, after)]
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--diff") from error
    lines, worse = list(difference(*reports)), is_worse(*reports)
    if as_json:
        print_json({"changes": lines, "worse": worse})
    else:
        for line in lines:
            click.echo(line)
    return 1 if worse else 0
