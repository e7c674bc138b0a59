"""`BackendPlugin`: the plugin that offers a `Backend` to plugrt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from plugrt.interface import Client, OptionValue
from plugrt.plugins import Plugin
from plugrt_sdk.backend import Backend


class BackendPlugin(Plugin):
    """Offers a backend to plugrt; put an instance behind the entry point ``plugrt.plugins``.

    ``factory`` makes the `Backend` from the create options, as keyword arguments; it is called
    when the backend is selected, never before.
    """

    def __init__(self, name: str, factory: Callable[..., Backend], *, priority: int = 400) -> None:
        self.name = name
        self.priority = priority
        self._factory = factory

    def create_client(
        self, options: Mapping[str, OptionValue], distributed: Any | None = None
    ) -> Client:
        from plugrt_sdk.client import BackendClient

        return BackendClient(self._factory(**options))
