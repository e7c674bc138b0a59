"""``plugrt doctor``: prints settings, plugins, the chosen backend and why, and problems."""

from __future__ import annotations

from typing import Any

import click

from plugrt.base import files
from plugrt.cli.doctor_checks import Examination, describe_owner, examine
from plugrt.cli.doctor_jax import describe_jax, explain_missing_jax
from plugrt.cli.output import json_option, print_json, print_line, print_table
from plugrt.errors import FileRefused

_PAGE = "plugrt-doctor.html"


@click.command("doctor", short_help="Explain settings, plugins, and the choice.")
@json_option
@click.option(
    "--html", "html", is_flag=False, flag_value=_PAGE, metavar="[FILE]",
    help=f"Write a page to look at, to FILE or {_PAGE}.",
)  # fmt: skip
def command(as_json: bool, html: str | None) -> int:
    """Explain the settings, every plugin, and which is chosen.

    Plugins are started as a program would start them, but in a process of their own. Exits with 1
    if something that was asked for does not work.
    """
    try:
        path = None if html is None else files.claim(html)
    except FileRefused as error:
        raise click.BadParameter(str(error), param_hint="--html") from error
    found = examine()
    if path is not None:
        from plugrt.cli.doctor_page import page

        # A lone surrogate, of a file's name say, has no bytes in UTF-8.
        path.write_bytes(page(found).encode("utf-8", "backslashreplace"))
    if as_json:
        print_json(found.as_dict())
    elif path is None:
        _print(found)
    else:
        print_line(f"{found.verdict} ({found.elapsed_s:.1f} s)")
        print_line(f"wrote {path}")
    return 1 if found.problems else 0


def _print(found: Examination) -> None:
    print_line(", ".join(f"{name} {version}" for name, version in found.versions.items()))
    if found.core:
        print_line(f"core: {found.core}")
    if found.settings:
        print_table(
            ("variable", "value", "source"),
            [(s["variable"], s["value"], s["source"]) for s in found.settings],
            "Settings",
        )
    if found.candidates:
        print_table(
            ("name", "priority", "state", "from", "ms", "why, and what would help"),
            [_row(row) for row in found.candidates],
            "Plugins",
        )
        _print_jax(found.candidates)
    if found.facts:
        rows = [(fact["from"], fact["name"], fact["value"]) for fact in found.facts]
        print_table(("from", "fact", "value"), rows, "Facts")
    for label, lines in (("warning", found.warnings), ("hint", found.hints)):
        for line in lines:
            print_line(f"{label}: {line}")
    if found.chosen:
        print_line(f"chosen: {found.choice}")
    for problem in found.problems:
        print_line(f"problem: {problem}")
    print_line(f"{found.verdict} ({found.elapsed_s:.1f} s)")


def _print_jax(candidates: list[dict[str, Any]]) -> None:
    if missing := explain_missing_jax():
        print_line(f"JAX will find none of them, because {missing}")
        return
    rows = [(row["name"], describe_owner(row), describe_jax(row)) for row in candidates]
    print_table(("name", "from", "JAX will find it"), rows, "Under JAX")


def _row(row: dict[str, Any]) -> tuple[object, ...]:
    why = "; ".join(str(part) for part in (row["reason"], row["cure"]) if part)
    priority = "" if row["priority"] is None else row["priority"]
    return row["name"], priority, row["state"], describe_owner(row), f"{row['elapsed_ms']:.0f}", why
