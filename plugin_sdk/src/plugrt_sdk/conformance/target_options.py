"""`read_target`: parses a command line's target and its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from plugrt.errors import InvalidArgument, PluginError
from plugrt.interface import OptionValue
from plugrt_sdk.conformance.target import Target


def read_target(name: str, given: Mapping[str, Any]) -> Target:
    """Returns the target; raises `click.BadParameter` if it does not exist."""
    try:
        target = Target.parse(
            name, _read_options(given["options"], "--option"), topology=given["topology"],
            topology_options=_read_options(given["topology_options"], "--topology-option"),
        )  # fmt: skip
        target.require()
    except InvalidArgument as error:
        raise click.BadParameter(error.message, param_hint="NAME") from error
    except PluginError as error:  # no plugin has that name
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
    """Parses a boolean or a number, since PJRT's options have types; returns other text."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
