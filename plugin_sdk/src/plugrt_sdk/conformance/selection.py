"""`select`: the checks of a run; `Stored`: results of earlier runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from plugrt.errors import InvalidArgument
from plugrt_sdk.conformance import registry
from plugrt_sdk.conformance.check import Check
from plugrt_sdk.conformance.manifest import manifest_hash
from plugrt_sdk.conformance.profiles import checks_of, sample
from plugrt_sdk.conformance.reports.stored import read_report
from plugrt_sdk.conformance.verdict import Result, Verdict

_SAME_PLUGIN = (
    "kind", "options", "topology", "topology_options", "distribution", "version", "entry_point",
    "library_sha256", "api_version",
)  # fmt: skip
"""Facts of the plugin that must be unchanged. A library may have moved."""
_SAME_SETTINGS = ("seed", "tolerances_ulp")


def select(given: Mapping[str, Any]) -> Sequence[Check]:
    """Returns the checks that the command's options select.

    Raises `click.UsageError` for an unknown check, for options that exclude each other, and for an
    empty selection.
    """
    names = list(given["names"])
    if given["profile"]:
        names += [check.id for check in checks_of(given["profile"])]
    if given["profile"] and given["quick"]:
        raise click.UsageError("--quick leaves out checks that a profile needs: drop one of them")
    if given["rerun_failed"]:
        if names:
            raise click.UsageError("--rerun-failed names its checks: drop --check and --profile")
        names = _read_failed(given["rerun_failed"])
    try:
        checks = registry.select(names, given["level"], given["words"])
    except InvalidArgument as error:
        raise click.UsageError(error.message) from error
    checks = sample(checks) if given["quick"] else checks
    part, parts = given["shard"] or (1, 1)
    if not (chosen := checks[part - 1 :: parts]):
        raise click.UsageError(f"--shard {part}/{parts}: the selection has {len(checks)} checks")
    return chosen


def _read_failed(path: Path) -> list[str]:
    """Returns the ids of checks that failed, crashed or hung in a report, including waived ones."""
    report = _read(path, "--rerun-failed")
    bad = [row["id"] for row in report["checks"] if _result(row).verdict.is_bad]
    if not bad:
        raise click.UsageError(f"--rerun-failed: no check failed in {path}")
    return bad


def _read(path: Path, hint: str) -> dict[str, Any]:
    try:
        return read_report(path)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=hint) from error


def _result(row: Mapping[str, Any]) -> Result:
    """Returns the result of a report's row, without its waiver."""
    verdict = row["verdict"]
    return Result.from_dict(
        {
            **row,
            "verdict": row.get("was", verdict) if verdict == Verdict.WAIVED else verdict,
            "was": "",
        }
    )


@dataclass(frozen=True)
class Stored:
    """Results of earlier runs: of checks that ended, of the client, and of the runs."""

    results: Mapping[str, Result]
    client: Mapping[str, Any]
    notes: Sequence[str]
    seconds: float

    @classmethod
    def read(
        cls, paths: Sequence[Path], plugin: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> Stored:
        """Reads the reports that a run continues; of two results of a check the first counts.

        Raises `click.BadParameter` for a report of another kit, plugin or settings.
        """
        results: dict[str, Result] = {}
        client: dict[str, Any] = {}
        notes: list[str] = []
        seconds = 0.0
        for path in paths:
            report = _read(path, "--resume")
            if fault := _find_difference(report, plugin, settings):
                raise click.BadParameter(
                    f"{path} is of another run: {fault}", param_hint="--resume"
                )
            found = {row["id"]: _result(row) for row in report["checks"]}
            untried = (Verdict.NOT_RUN, Verdict.NO_HARDWARE)
            results = {k: r for k, r in found.items() if r.verdict not in untried} | results
            client = client or report.get("client", {})
            notes += report.get("notes", [])
            seconds += report.get("seconds", 0.0)
        return cls(results, client, notes, seconds)


def _find_difference(
    report: Mapping[str, Any], plugin: Mapping[str, Any], settings: Mapping[str, Any]
) -> str:
    """Returns the first difference of a report's run from this one, or an empty string."""
    if report["kit"].get("manifest_sha256") != manifest_hash():
        return "the kit has other checks now"
    for keys, then, now in (
        (_SAME_PLUGIN, report["plugin"], plugin),
        (_SAME_SETTINGS, report["settings"], settings),
    ):
        for key in keys:
            if then.get(key) != now[key]:
                return f"its {key} is {then.get(key)!r}, now it is {now[key]!r}"
    return ""
