"""``plugrt conform``: its options; `plugrt_sdk.conformance.invocation` runs it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from plugrt.cli.output import json_option
from plugrt.cli.usage import complete_plugin
from plugrt_sdk.duration_option import Duration

PROFILE_NAMES = ("minimal", "jax", "torch_xla", "aot", "multi-device")
"""The profiles, repeated here so that ``plugrt --help`` imports no check."""
_PATH = click.Path(dir_okay=False, path_type=Path)
_OUTPUT = click.Path(dir_okay=False, allow_dash=True, path_type=Path)
_REPORT = click.Path(dir_okay=False, exists=True, path_type=Path)


def _read_shard(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[int, int] | None:
    """Parses ``2/4`` into the part and the number of parts."""
    if text is None:
        return None
    match = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
    part, parts = map(int, match.groups()) if match else (1, 0)
    if part > parts:
        raise click.BadParameter(f"{text!r} is not I/N with 1 <= I <= N, such as 2/4")
    return part, parts


def _complete_check(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Completes the id of a check in the shell."""
    from plugrt_sdk.conformance import registry

    return [check.id for check in registry.select() if check.id.startswith(incomplete)]


@click.command("conform", short_help="Put a plugin through the conformance kit.")
@click.argument("name", required=False, shell_complete=complete_plugin)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="A create option; a number or a boolean is read as one. May be repeated.",
)
@click.option(
    "--topology",
    metavar="NAME",
    default="",
    help="The devices to compile for that need not be there; by default the plugin's first.",
)
@click.option(
    "--topology-option",
    "topology_options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of the topology; KEY=@FILE has the text of a file. May be repeated.",
)
@click.option(
    "--check",
    "names",
    multiple=True,
    metavar="ID",
    shell_complete=_complete_check,
    help="Run this check. May be repeated.",
)
@click.option("--level", type=click.IntRange(0, 4), help="Run the checks up to this level.")
@click.option("--quick", is_flag=True, help="Of checks that differ in the dtype alone, run one.")
@click.option(
    "--rerun-failed",
    type=_REPORT,
    metavar="REPORT",
    help="Run the checks that failed, crashed or hung in this JSON report.",
)
@click.option(
    "--shard",
    callback=_read_shard,
    metavar="I/N",
    help="Run the Ith of N parts of the selected checks.",
)
@click.option(
    "--resume",
    type=_REPORT,
    multiple=True,
    metavar="REPORT",
    help="Take the results of this JSON report, and run what it lacks. May be repeated.",
)
@click.option(
    "--repeat",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Run the checks N times, and report the worst verdict of each.",
)
@click.option(
    "-k",
    "words",
    default="",
    metavar="WORDS",
    help="Run the checks with all these words in id or title; -WORD: without it.",
)
@click.option(
    "--profile",
    type=click.Choice(PROFILE_NAMES),
    help="Run what a host needs; all of it must pass.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How many processes at a time.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="The seed of the numbers that are tried.",
)
@click.option(
    "--time-limit",
    "seconds",
    type=Duration(0.1, 86_400),
    default=30.0,
    show_default=True,
    metavar="S",
    help="Seconds that one check may take.",
)
@click.option(
    "--waivers",
    "waivers_file",
    type=_PATH,
    help="The waivers; conformance-waivers.toml by default.",
)
@json_option
@click.option(
    "--report",
    "report_file",
    type=_OUTPUT,
    help="Write the report as JSON to this file, for --diff; - is stdout.",
)
@click.option("--junit", "junit_file", type=_OUTPUT, help="Write JUnit XML.")
@click.option("--markdown", "markdown_file", type=_OUTPUT, help="Write Markdown.")
@click.option(
    "--readme",
    "readme_file",
    type=_PATH,
    help="Write level and counts into this file, between the marks that `plugrt new` puts there.",
)
@click.option("--html", "html_file", type=_OUTPUT, help="Write a scorecard: one HTML page.")
@click.option("--badge", "badge_file", type=_OUTPUT, help="Write the level as an SVG badge.")
@click.option(
    "--diff",
    nargs=2,
    type=_REPORT,
    metavar="A B",
    help="Say what changed between two JSON reports; runs nothing.",
)
@click.option(
    "--export",
    "export_folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write the selected checks as data, and a runner in C for them; runs nothing.",
)
@click.option("--list", "only_list", is_flag=True, help="List the selected checks; runs nothing.")
def command(name: str | None, **given: Any) -> int:
    """Put a plugin through the conformance kit.

    NAME is an installed plugin, the path of a PJRT library (with a / or ending in .so), or
    module:object of a Plugin.

    Every check runs in a process of its own or with others in one; a crash or a hang of the plugin
    is the verdict of the check that was open. Exits with 1 for a FAIL, CRASH or TIMEOUT that is not
    waived, with 2 for wrong usage: an unknown check, a selection of nothing that could be run, a
    waiver that is stale or expired. Ctrl-C ends it with 130, SIGTERM with 143, and a report of what
    had ended; --resume runs the rest.
    """
    from plugrt_sdk.conformance.invocation import invoke

    return invoke(name, given)
