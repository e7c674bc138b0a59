"""`RemotePlugin`: the plugin ``remote``, as its entry point names it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from plugrt.errors import InvalidArgument, Unavailable
from plugrt.interface import Client, OptionValue
from plugrt.plugins import Availability, Plugin
from plugrt_remote.log import logger

if TYPE_CHECKING:
    from plugrt.plugins.coordination import Connection
    from plugrt.settings.declarations import Config

VARIABLE = "PLUGRT_REMOTE"


class RemotePlugin(Plugin):
    """The devices of the server whose address is in PLUGRT_REMOTE."""

    name = "remote"
    priority = 600  # above the plugins of local devices, as the user has set the variable

    def probe(self) -> Availability:
        if os.environ.get(VARIABLE):
            return Availability.yes(f"{VARIABLE}={os.environ[VARIABLE]}")
        return Availability.no(
            f"{VARIABLE} is not set",
            f"set {VARIABLE}=unix:PATH or tls://HOST:PORT to use a device server",
        )

    def answers(self) -> bool:
        """Whether a server accepts connections at PLUGRT_REMOTE; logs a warning if none does."""
        from plugrt_remote.addresses import connect

        try:
            connect(os.environ[VARIABLE]).sock.close()
        except Unavailable as error:
            _warn(error)
            return False
        return True

    def client_options(self, config: Config) -> dict[str, OptionValue]:
        named = {name.strip() for name in (config.platforms or "").split(",")}
        return {"warn": self.name not in named}

    def create_client(
        self, options: Mapping[str, OptionValue], distributed: Connection | None = None
    ) -> Client:
        """Connects to the server at the option ``address``, or else at PLUGRT_REMOTE.

        Raises `Unavailable` if no server answers; with the option ``warn`` also logs a warning.
        """
        from plugrt_remote.client import RemoteClient

        if unknown := options.keys() - {"address", "warn"}:
            raise InvalidArgument(
                f"the plugin remote has no option {', '.join(sorted(unknown))}; its option is "
                "address"
            )
        try:
            return RemoteClient(str(options.get("address") or os.environ.get(VARIABLE, "")))
        except Unavailable as error:
            if options.get("warn"):
                _warn(error)
            raise


def _warn(error: Unavailable) -> None:
    logger.warning("%s is set, and is not used: %s", VARIABLE, error.message)


plugin = RemotePlugin()
