"""The command line ``plugrt``: one module a command, imported when the command is used.

Exit codes: 0, all well; 1, a requested item does not work; 2, wrong usage.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from plugrt.cli import streams
from plugrt.errors import PlugrtError, describe, read_message

COMMANDS = {
    "compile": "plugrt.cli.compile",
    "demo": "plugrt.cli.demo",
    "devices": "plugrt.cli.devices",
    "doctor": "plugrt.cli.doctor",
    "inspect": "plugrt.cli.inspect_model",
    "pack": "plugrt.cli.pack",
    "run": "plugrt.cli.run",
}
"""Command name to module, whose attribute ``command`` is the `click.Command`."""


class _Group(click.Group):
    """A group whose commands are imported when used; plugins' commands are listed last."""

    _has_plugin_commands = False

    def list_commands(self, ctx: click.Context) -> list[str]:
        self._add_plugin_commands()
        return [*COMMANDS, *sorted(set(super().list_commands(ctx)) - set(COMMANDS))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            command: click.Command = import_module(COMMANDS[cmd_name]).command
            return command
        self._add_plugin_commands()
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            close = get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not close or "Did you mean" in error.message:
                raise
            raise click.UsageError(f"{error.message} Did you mean {close[0]!r}?", ctx) from None

    def _add_plugin_commands(self) -> None:
        """Adds the commands of every entry point of the group ``plugrt.cli``.

        A package that fails is named in one line on stderr; the others are used.
        """
        from plugrt.plugins.offers.offers import collect_offers
        from plugrt.plugins.selection.backends import process_backends

        if not self._has_plugin_commands:
            self._has_plugin_commands = True
            table = process_backends().table
            for _ in collect_offers(table, "plugrt.cli", "commands", lambda *_: None, cli=self):
                pass  # the hook has added them itself


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="plugrt", prog_name="plugrt")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """Run array programs on any device that has a PJRT plugin.

    Exit codes: 0, all well; 1, something that was asked for does not work; 2, wrong usage.

    Completion in bash (or zsh, fish): eval "$(_PLUGRT_COMPLETE=bash_source plugrt)"

    NO_COLOR, set to any text, turns colours off.
    """
    if os.environ.get("NO_COLOR"):  # https://no-color.org
        ctx.color = False


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command line and exits with its code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    streams.fill_closed()
    streams.outlive_readers()
    _print_warnings()
    sys.exit(streams.finish(_run(arguments)))


def _run(arguments: list[str]) -> int:
    try:
        result: object = cli.main(arguments, prog_name="plugrt", standalone_mode=False)
    except click.ClickException as error:
        if isinstance(error, click.UsageError) and error.ctx is not None:
            click.echo(f"{error.ctx.get_usage()}\n", err=True)
        _fail(error.format_message())
        return error.exit_code
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        return 130
    except Exception as error:  # noqa: BLE001 plugins run here, and may raise anything
        if "--debug" in arguments:
            import traceback

            traceback.print_exc()
            return 1
        if isinstance(error, PlugrtError | OSError):
            return _fail(read_message(error))
        return _fail(f"{describe(error)} (plugrt --debug shows where)")
    return result if isinstance(result, int) else 0


def _print_warnings() -> None:
    from plugrt.cli.output import WarningLines

    logger = logging.getLogger("plugrt")
    if not logger.hasHandlers():
        logger.addHandler(WarningLines())


def _fail(message: str) -> int:
    from plugrt.cli.output import print_line

    print_line(f"error: {message}", err=True)
    return 1
