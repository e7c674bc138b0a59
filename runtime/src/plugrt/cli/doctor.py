"""``plugrt doctor``: explains what was found, what was chosen and why, and what is wrong."""

from __future__ import annotations

import click

from plugrt.cli.doctor_checks import Examination, examine
from plugrt.cli.output import json_option, print_json, print_line, print_table


@click.command("doctor")
@json_option
def command(as_json: bool) -> int:
    """Explain the settings, every plugin, and which is chosen.

    Plugins are started as a program would start them, but in a process of their own. Exits with 1
    if something that was asked for does not work.
    """
    found = examine()
    if as_json:
        print_json(found.as_dict())
    else:
        _print(found)
    return 1 if found.problems else 0


def _print(found: Examination) -> None:
    print_line(", ".join(f"{name} {version}" for name, version in found.versions.items()))
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
    for label, lines in (("warning", found.warnings), ("hint", found.hints)):
        for line in lines:
            print_line(f"{label}: {line}")
    if found.chosen:
        counts = ", ".join(f"{name} (devices: {found.devices[name]})" for name in found.chosen)
        print_line(f"chosen: {counts}, because {found.why}")
    for problem in found.problems:
        print_line(f"problem: {problem}")
    print_line(f"{'something asked for does not work' if found.problems else 'all well'}"
               f" ({found.elapsed_s:.1f} s)")  # fmt: skip


def _row(row: dict[str, object]) -> tuple[object, ...]:
    owner = f"{row['distribution']} {row['version']}".strip() or row["library"] or row["source"]
    why = "; ".join(str(part) for part in (row["reason"], row["cure"]) if part)
    priority = "" if row["priority"] is None else row["priority"]
    return row["name"], priority, row["state"], owner, f"{row['elapsed_ms']:.0f}", why
