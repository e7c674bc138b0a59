"""The command ``plugrt serve``."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

import click

from plugrt.cli.usage import complete_plugin, usage_errors
from plugrt.errors import (
    AlreadyExists,
    ConfigError,
    PermissionDenied,
    Unavailable,
    UnknownPlatform,
)
from plugrt.plugins import hookimpl


@hookimpl
def plugrt_add_commands(cli: Any) -> None:
    """Adds the command to the command line."""
    cli.add_command(serve)


@click.command()
@click.option("--platform", shell_complete=complete_plugin, help="The platform to serve.")
@click.option("--bind", required=True, metavar="ADDRESS", help="unix:PATH or tls://HOST:PORT.")
@click.option("--certificate", default="", metavar="FILE", help="For tls://: PEM file.")
@click.option("--key", default="", metavar="FILE", help="The certificate's key, in PEM.")
@click.option("--token-file", metavar="FILE", help="The token of clients by tls://.")
@click.option(
    "--allow-custom-call",
    multiple=True,
    metavar="TARGET",
    help="A custom call to allow; '*' for all.",
)
@click.option(
    "--session-bytes",
    default=0,
    help="Limit of a session's bytes on devices; 0: none.",
    show_default=True,
)
@click.option("--callback-seconds", default=600.0, help="Limit of a client's function; 0: none.")
@click.option("--status", is_flag=True, help="Print the sessions of a running server.")
@click.option("--json", "as_json", is_flag=True, help="Print the status as JSON.")
def serve(
    platform: str | None, bind: str, certificate: str, key: str, token_file: str | None,
    allow_custom_call: tuple[str, ...], session_bytes: int, callback_seconds: float,
    status: bool, as_json: bool,
) -> None:  # fmt: skip
    """Serve a backend to other programs.

    Programs of plugrt and JAX use it with PLUGRT_REMOTE=ADDRESS; for tls:// they also need
    PLUGRT_REMOTE_CA and PLUGRT_REMOTE_TOKEN_FILE. Every client can run native code in this process,
    so that a Unix socket accepts this user alone. Ctrl-C or SIGTERM ends the server.
    """
    if status:
        _print_status(bind, as_json)
        return
    os.environ.pop("PLUGRT_REMOTE", None)  # the server must not use the plugin remote
    from plugrt import config
    from plugrt.plugins.selection.backends import get_backend
    from plugrt_remote.serving.backend import Policy
    from plugrt_remote.serving.server import Server
    from plugrt_remote.tls import read_token

    with usage_errors(AlreadyExists, ConfigError, UnknownPlatform):
        if platform:  # JAX_PLATFORMS may name remote, which is for the server's clients
            config.update("platforms", platform)
        token = read_token(token_file) if token_file else b""
        policy = Policy(token, frozenset(allow_custom_call), session_bytes, callback_seconds)
        server = Server(get_backend(platform), policy)
        server.bind(bind, certificate, key)

    def end(*_: object) -> None:
        server.close()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    count = len(server.backend.client.addressable_devices())
    click.echo(f"serving {count} devices of {server.backend.client.platform} at {bind}")
    sys.stdout.flush()
    server.serve()
    os._exit(0)  # a normal exit waits for calls of the backend


def _print_status(address: str, as_json: bool) -> None:
    from plugrt_remote.client import RemoteClient

    with usage_errors(ConfigError, PermissionDenied, Unavailable):
        client = RemoteClient(address)
        found = client.status()
    if as_json:
        click.echo(
            json.dumps({"platform": client.platform, "devices": len(client.devices()), **found})
        )
        return
    sessions = found["sessions"]
    click.echo(
        f"{client.platform}: {len(client.devices())} devices, {len(sessions)} sessions, "
        f"{found['programs']} programs, {found['compilations']} compilations"
    )
    for at, session in enumerate(sessions):
        if not at:
            click.echo("".join(f"{name:>12}" for name in session))
        click.echo("".join(f"{value:>12}" for value in session.values()))
