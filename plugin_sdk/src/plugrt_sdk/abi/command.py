"""``plugrt abi diff``: the differences between two headers of the PJRT C API."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plugrt.cli.output import json_option
from plugrt.cli.usage import usage_errors
from plugrt.errors import InvalidArgument

if TYPE_CHECKING:
    from plugrt_sdk.abi.api import Api
    from plugrt_sdk.abi.difference import Change

EXPORTED_EXTENSIONS = (
    "PJRT_Shardings_Extension",
    "PJRT_Layouts_Extension",
    "PJRT_MemoryDescriptions_Extension",
    "PJRT_AbiVersion_Extension",
    "PJRT_FFI_Extension",
)
"""The tables of the extensions that an exported plugin has, in the order of its chain."""

_FILE = click.Path(path_type=Path)


@click.group()
def abi() -> None:
    """Look into versions of the PJRT C API."""


@abi.command("diff")
@click.argument("header", type=_FILE)
@click.argument("other", type=_FILE, required=False)
@json_option
def diff(header: Path, other: Path | None, as_json: bool) -> int:
    """Compare HEADER, a pjrt_c_api.h or the header of an extension, with OTHER, a later one.

    Without OTHER, HEADER is compared with plugrt's own declarations; the older is the first.
    Functions, fields and enumerators that were added, removed or moved, and types that changed, are
    listed; a break is marked with !. Functions of the newer table that plugrt's export lacks
    follow.

    Exit code: 0, nothing breaks; 1, programs built for one do not work with the other; 2, a file is
    no header.
    """
    from plugrt_sdk.abi.declared import declared_api
    from plugrt_sdk.abi.difference import compare
    from plugrt_sdk.abi.header import read_header

    with usage_errors(InvalidArgument):
        old = read_header(header)
        extension = old.table if old.table != "PJRT_Api" else ""
        new = declared_api(extension) if other is None else read_header(other)
        if other is None and old.version > new.version > ():
            old, new = new, old
        changes = compare(old, new)
    unfilled = _find_unfilled(new)
    if as_json:
        _print_json(old, new, changes, unfilled)
    else:
        _print(old, new, changes, unfilled)
    return int(any(change.breaks for change in changes))


def _find_unfilled(api: Api) -> dict[str, str]:
    """Returns the functions of a table that an exported plugin does not have, with the reason."""
    from plugrt_sdk.abi.declared import declared_api
    from plugrt_sdk.export.native import refused_functions

    if api.table not in ("PJRT_Api", *EXPORTED_EXTENSIONS):
        return dict.fromkeys(_functions(api), "of an extension that exports do not have")
    extension = api.table if api.table != "PJRT_Api" else ""
    refused, known = set(refused_functions()), set(declared_api(extension).functions)
    reasons = dict.fromkeys(refused, "refused as UNIMPLEMENTED")
    return {
        name: reasons.get(name, "not known to this plugrt-sdk")
        for name in _functions(api)
        if name in refused or name not in known
    }


def _functions(api: Api) -> list[str]:
    """Returns the functions of a table; the table of an extension has other fields, too."""
    return [name for name in api.functions if "." not in name]


def _title(api: Api) -> str:
    count = len(_functions(api))
    return f"{api.title}, {count} function{'s' * (count != 1)}"


def _print_json(old: Api, new: Api, changes: list[Change], unfilled: dict[str, str]) -> None:
    from plugrt.cli.output import print_json

    sides: dict[str, Any] = {
        name: {
            "source": api.source,
            "version": list(api.version),
            "functions": len(_functions(api)),
        }
        for name, api in (("old", old), ("new", new))
    }
    found = [asdict(change) for change in changes]
    breaks = sum(change.breaks for change in changes)
    print_json({**sides, "changes": found, "breaks": breaks, "not_exported": unfilled})


def _print(old: Api, new: Api, changes: list[Change], unfilled: dict[str, str]) -> None:
    from plugrt.cli.output import print_line

    print_line(f"from {_title(old)}")
    print_line(f"to   {_title(new)}\n")
    for change in changes:
        mark = "!" if change.breaks else " "
        print_line(f"{mark} {change.kind:8} {change.what:11} {change.name}: {change.text}")
    breaks = sum(change.breaks for change in changes)
    print_line(f"\n{len(changes)} changes, {breaks} of them break programs built for the other.")
    if unfilled:
        print_line(f"\nplugrt's export lacks {len(unfilled)} of the newer table's functions:")
        for name, reason in unfilled.items():
            print_line(f"  {name}: {reason}")
