"""The command ``plugrt serve``."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import click

from plugrt.cli.usage import complete_plugin, usage_errors
from plugrt.errors import AlreadyExists, ConfigError, UnknownPlatform
from plugrt.plugins import hookimpl


@hookimpl
def plugrt_add_commands(cli: Any) -> None:
    """Adds the command to the command line."""
    cli.add_command(serve)


@click.command()
@click.option("--platform", shell_complete=complete_plugin, help="The backend to serve.")
@click.option("--bind", required=True, metavar="unix:PATH", help="The socket to make.")
def serve(platform: str | None, bind: str) -> None:
    """Serve a backend to other programs.

    They use them with PLUGRT_REMOTE=unix:PATH, under plugrt and JAX. Whoever may connect can run
    native code in this process: the socket is for this user alone. Ctrl-C or SIGTERM ends it.
    """
    os.environ.pop("PLUGRT_REMOTE", None)  # a server does not serve another one's devices
    from plugrt.plugins.selection.backends import get_backend
    from plugrt_remote.serving.server import Server

    with usage_errors(AlreadyExists, ConfigError, UnknownPlatform):
        server = Server(get_backend(platform))
        server.bind(bind)

    def end(*_: object) -> None:
        server.close()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    count = len(server.backend.client.addressable_devices())
    click.echo(f"serving {count} devices of {server.backend.client.platform} at {bind}")
    sys.stdout.flush()
    server.serve()
    os._exit(0)  # sessions may be in calls of the backend, which nothing can end
