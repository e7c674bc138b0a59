"""``plugrt devices``: lists the devices of the started backends."""

from __future__ import annotations

from typing import Any

import click

from plugrt.cli.output import json_option, print_json, print_table
from plugrt.cli.streams import keep_stdout
from plugrt.cli.usage import complete_plugin, usage_errors
from plugrt.errors import UnknownPlatform
from plugrt.interface import Device


@click.command("devices", short_help="List the devices of the backends.")
@click.option(
    "--platform", shell_complete=complete_plugin, help="Only the devices of this backend."
)
@json_option
def command(platform: str | None, as_json: bool) -> None:
    """List the devices: the default backend's first."""
    keep_stdout()
    rows = _rows(platform)
    if as_json:
        print_json(rows)
        return
    columns = ("device", "backend", "kind", "memories", "process", "default")
    print_table(columns, [
        (f"{row['platform']}:{row['id']}", row["backend"], row["kind"], ", ".join(row["memories"]),
         row["process_index"], "yes" if row["default"] else "")
        for row in rows
    ])  # fmt: skip


def _rows(platform: str | None) -> list[dict[str, Any]]:
    from plugrt.plugins.selection.backends import get_backend, process_backends

    choice = process_backends().initialise()
    names = choice.names if platform is None else (platform,)
    by = ""
    if platform is not None:
        by = f"--platform {platform}"
        with usage_errors(UnknownPlatform):
            process_backends().get(platform, by)
    default = get_backend().addressable_devices()[:1]
    return [
        {**_row(device), "backend": name, "default": device in default}
        for name in names
        for device in process_backends().get(name, by).devices()
    ]


def _row(device: Device) -> dict[str, object]:
    return {
        "id": device.id,
        "platform": device.platform,
        "kind": device.kind,
        "process_index": device.process_index,
        "local_hardware_id": device.local_hardware_id,
        "addressable": device.is_addressable,
        "memories": [memory.kind for memory in device.memories()],
    }
