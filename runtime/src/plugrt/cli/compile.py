"""``plugrt compile``: compiles a program for devices that may be absent."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plugrt.cli.inputs import READABLE, read_program_argument
from plugrt.cli.output import json_option, print_json, print_line
from plugrt.cli.usage import usage_errors
from plugrt.errors import ProgramError, UnknownPlatform, escape_controls

if TYPE_CHECKING:
    from plugrt.interface import OptionValue
    from plugrt.transforms.aot import AheadOfTime


@click.command("compile", short_help="Compile a program for devices that are not here.")
@click.argument("file", type=READABLE)
@click.option(
    "--topology", "name", required=True, metavar="PLATFORM:NAME",
    help="The devices to compile for, such as tpu:v5e:2x2; the names are the plugin's.",
)  # fmt: skip
@click.option(
    "--option", "options", multiple=True, metavar="NAME=VALUE",
    help="An option of the topology: true, 4, 0.5, 1,2 or text.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write the executable into.",
)  # fmt: skip
@click.option("--text", is_flag=True, help="Also print the optimised program.")
@json_option
def command(
    file: Path,
    name: str,
    options: tuple[str, ...],
    output: Path | None,
    text: bool,
    as_json: bool,
) -> None:
    """Compile FILE (- for standard input) for a topology and print its costs.

    No such device is needed.
    """
    import plugrt

    platform, colon, rest = name.partition(":")
    with usage_errors(UnknownPlatform):
        target = plugrt.topology(platform, rest if colon else "", **dict(map(_option, options)))
    start = time.perf_counter()
    with usage_errors(ProgramError):
        program = plugrt.load_program(read_program_argument(file))
    compiled = plugrt.compile(program, topology=target)
    seconds = time.perf_counter() - start
    saved = compiled.serialize()
    if output is not None:
        output.write_bytes(saved)
    facts: dict[str, object] = {
        "program": compiled.program.name,
        "topology": name,
        "platform": target.platform,
        "platform_version": target.platform_version,
        "devices": len(target.devices),
        "device_kind": ", ".join(dict.fromkeys(d.kind for d in target.devices)),
        **_cost(compiled),
        "memory": _memory(compiled),
        "serialized_bytes": len(saved),
        "compile_seconds": seconds,
        "written": None if output is None else str(output),
    }
    if text:
        facts["text"] = compiled.as_text()
    if as_json:
        print_json(facts)
    else:
        _print(facts)


def _option(text: str) -> tuple[str, OptionValue]:
    from plugrt.settings.option_types import option_value

    key, found, value = text.partition("=")
    if not found or not key.strip():
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--option")
    return key.strip(), option_value(value)


def _cost(compiled: AheadOfTime) -> dict[str, object]:
    """Returns the costs and their source; null with the reason if there are none."""
    from plugrt.errors import MissingTraceExtra, Unimplemented

    try:
        cost, source = compiled.cost_and_source()
    except (Unimplemented, MissingTraceExtra) as error:
        return {"flops": None, "bytes_accessed": None, "cost_source": str(error)}
    return {
        "flops": cost.get("flops"),
        "bytes_accessed": cost.get("bytes accessed"),
        "cost_source": source,
    }


def _memory(compiled: AheadOfTime) -> dict[str, int] | None:
    from plugrt.errors import Unimplemented

    try:
        return asdict(compiled.memory_analysis())
    except Unimplemented:
        return None


def _print(facts: dict[str, Any]) -> None:
    print_line(
        f"{facts['program']!r} for {facts['topology']} ({facts['devices']} x "
        f"{facts['device_kind']}), compiled in {facts['compile_seconds']:.3f} s"
    )
    memory = facts["memory"] or {}
    rows = [
        ("flops", facts["flops"]),
        ("bytes accessed", facts["bytes_accessed"]),
        *((key.removesuffix("_in_bytes").replace("_", " "), value)
          for key, value in memory.items() if value),
        ("executable", facts["serialized_bytes"]),
    ]  # fmt: skip
    for label, value in rows:
        unit = "" if label == "flops" else " bytes"
        shown = "not stated" if value is None else f"{value:,.0f}{unit}"
        click.echo(f"  {label:<26}{shown:>24}")
    print_line(f"  flops and bytes accessed: {facts['cost_source']}")
    if facts["written"]:
        print_line(f"wrote {facts['written']}")
    if "text" in facts:
        click.echo(escape_controls(facts["text"]))
