"""`invoke`: what ``plugrt conform`` does with its options."""

from __future__ import annotations

import datetime
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from plugrt.cli.output import get_width
from plugrt.errors import ConfigError, InvalidArgument, PluginError
from plugrt.files import parse_json
from plugrt.interface import OptionValue
from plugrt_sdk.conformance import provenance, registry
from plugrt_sdk.conformance.check import Check
from plugrt_sdk.conformance.profiles import checks_of, missing
from plugrt_sdk.conformance.progress import Progress
from plugrt_sdk.conformance.reports.badge import badge
from plugrt_sdk.conformance.reports.difference import difference, is_worse
from plugrt_sdk.conformance.reports.junit import junit
from plugrt_sdk.conformance.reports.markdown import markdown
from plugrt_sdk.conformance.reports.readme import Slot
from plugrt_sdk.conformance.reports.report import FORMAT, make_report
from plugrt_sdk.conformance.reports.scorecard import scorecard
from plugrt_sdk.conformance.reports.terminal import print_report
from plugrt_sdk.conformance.runner import Runner
from plugrt_sdk.conformance.target import Target
from plugrt_sdk.conformance.verdict import Verdict
from plugrt_sdk.conformance.waivers import FILE, Waivers

_REPORTS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "json_file": lambda report: json.dumps(report, indent=2, default=str) + "\n",
    "junit_file": junit,
    "markdown_file": markdown,
    "html_file": scorecard,
    "badge_file": badge,
}


def invoke(name: str | None, given: Mapping[str, Any]) -> int:
    """Does what the command's options say; returns the exit code.

    Raises `click.UsageError` for an unknown plugin, library, check or report, for a selection of
    nothing, for a file of waivers that is not as it must be, and for a report that has no folder.
    """
    if given["diff"]:
        return _print_difference(*given["diff"])
    checks = _select(given)
    if given["only_list"]:
        return _print_list(checks)
    if not name:
        raise click.UsageError("NAME is missing: the plugin or the library to test.")
    return _conform(name, checks, given)


def _conform(name: str, checks: Sequence[Check], given: Mapping[str, Any]) -> int:
    waivers = _read_waivers(given["waivers_file"])
    slot = _find_slot(given["readme_file"])
    _require_folders(given)
    target = _target(name, given)
    facts = _facts(target)
    width = get_width(sys.stdout)
    runner = Runner(
        target, checks, given["seconds"], given["seed"], given["jobs"], waivers.tolerances,
        Progress(len(checks), get_width(sys.stderr)),
    )  # fmt: skip
    begin, interrupted = time.perf_counter(), False
    try:
        found = runner.run()
    except KeyboardInterrupt:
        found, interrupted = runner.results(), True
    seconds = round(time.perf_counter() - begin, 3)
    results = {key: waivers.apply(key, result) for key, result in found.items()}
    report = make_report(runner, results, waivers, {**facts, "seconds": seconds})
    print_report(report, width)
    for key, render in _REPORTS.items():
        if given[key] is not None:
            given[key].write_text(render(report), "utf-8")
    if slot is not None:
        slot.fill(report, given["badge_file"], given["html_file"])
    if interrupted:
        _end_at_once()
    for waiver in (stale := waivers.stale(found)):
        click.echo(f"stale waiver: {waiver.id} holds now; take it out of {waivers.path}", err=True)
    needed = missing(given["profile"], results) if given["profile"] else []
    if given["profile"]:
        said = f"lacks {', '.join(needed)}" if needed else "has all that it needs"
        click.echo(f"profile {given['profile']}: {said}")
    if empty := all(r.verdict is Verdict.NOT_RUN for r in results.values()):
        click.echo("no check was run, which proves nothing", err=True)
    if stale or empty:
        return 2
    return 1 if needed or any(r.verdict.is_bad for r in results.values()) else 0


def _end_at_once() -> NoReturn:
    """Ends this process, with which its child processes end.

    Threads that wait for child processes would be waited for.
    """
    click.echo("interrupted: the report is of the checks that had ended", err=True)
    sys.stdout.flush()
    os._exit(130)


def _select(given: Mapping[str, Any]) -> Sequence[Check]:
    names = list(given["names"])
    if given["profile"]:
        names += [check.id for check in checks_of(given["profile"])]
    try:
        return registry.select(names, given["level"], given["words"])
    except InvalidArgument as error:
        raise click.UsageError(error.message) from error


def _read_waivers(path: Path | None) -> Waivers:
    if path is None and not Path(FILE).exists():
        return Waivers()
    today = datetime.datetime.now(datetime.UTC).date()
    try:
        return Waivers.read(path or Path(FILE), today)
    except (ConfigError, InvalidArgument) as error:
        raise click.UsageError(str(error)) from error


def _find_slot(path: Path | None) -> Slot | None:
    """Returns the place to fill; asked before the checks run, since it may not be there."""
    if path is None:
        return None
    try:
        (slot := Slot(path)).require()
    except InvalidArgument as error:
        raise click.BadParameter(error.message, param_hint="--readme") from error
    return slot


def _require_folders(given: Mapping[str, Any]) -> None:
    """Refuses a report that could not be written, before the minutes that a run takes."""
    for key in _REPORTS:
        if (path := given[key]) is None:
            continue
        place = path if path.exists() else path.parent
        if not (path.parent.is_dir() and os.access(place, os.W_OK)):
            hint = f"--{key.removesuffix('_file')}"
            raise click.BadParameter(f"{path} cannot be written", param_hint=hint)


def _target(name: str, given: Mapping[str, Any]) -> Target:
    try:
        target = Target.parse(
            name, _read_options(given["options"], "--option"), topology=given["topology"],
            topology_options=_read_options(given["topology_options"], "--topology-option"),
        )  # fmt: skip
        target.require()
    except InvalidArgument as error:
        raise click.BadParameter(error.message, param_hint="NAME") from error
    except PluginError as error:  # no plugin of that name
        raise click.BadParameter(str(error), param_hint="NAME") from error
    return target


def _read_options(options: Sequence[str], hint: str) -> dict[str, OptionValue]:
    found: dict[str, OptionValue] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not (key and equals):
            raise click.BadParameter(f"{option!r} is not KEY=VALUE", param_hint=hint)
        found[key] = _read_file(value[1:], hint) if value[:1] == "@" else _read_value(value)
    return found


def _read_file(path: str, hint: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{path} cannot be read: {error}", param_hint=hint) from error


def _read_value(text: str) -> str | bool | int | float:
    """Returns a boolean or a number where the text is one, as PJRT's options have types."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _facts(target: Target) -> dict[str, Any]:
    return {
        "kit": provenance.describe_kit(),
        "plugin": provenance.describe_target(target),
        "machine": provenance.describe_machine(),
        "run": provenance.describe_command(),
    }


def _print_list(checks: Sequence[Check]) -> int:
    for check in checks:
        click.echo(f"{check.id}  [{int(check.level)}]  {check.title}")
    return 0


def _print_difference(before: Path, after: Path) -> int:
    reports = [_read_report(path) for path in (before, after)]
    for line in difference(*reports):
        click.echo(line)
    return 1 if is_worse(*reports) else 0


def _read_report(path: Path) -> dict[str, Any]:
    try:
        found = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise click.BadParameter(f"{path} is no report: {error}", param_hint="--diff") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        what = f"{path} is no report of plugrt conform of format {FORMAT}"
        raise click.BadParameter(what, param_hint="--diff")
    return found
