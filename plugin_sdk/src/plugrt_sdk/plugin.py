"""`BackendPlugin`: the plugin that offers a `Backend` to plugrt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from plugrt.errors import ArgumentTypeError, InvalidArgument
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Client, OptionValue, Topology
from plugrt.plugins import Plugin
from plugrt_sdk.backend import Backend


class BackendPlugin(Plugin):
    """Offers a backend to plugrt; put an instance behind the entry point ``plugrt.plugins``.

    ``factory`` makes the `Backend` from the create options, as keyword arguments; it is called
    when the backend is selected, never before. An argument that is not given is the attribute of
    the class.
    """

    factory: Callable[..., Backend] | None = None

    def __init__(
        self,
        name: str | None = None,
        factory: Callable[..., Backend] | None = None,
        *,
        priority: int | None = None,
    ) -> None:
        given = {"name": name, "factory": factory, "priority": priority}
        vars(self).update({key: value for key, value in given.items() if value is not None})
        if not callable(self.factory):
            raise ArgumentTypeError(
                f"BackendPlugin takes a function that makes a Backend; found {self.factory!r:.60}"
            )
        self._factory = self.factory

    @with_argument_errors
    def create_client(
        self, options: Mapping[str, OptionValue], distributed: Any | None = None
    ) -> Client:
        from plugrt_sdk.client import BackendClient

        self._check(options)
        return BackendClient(self._factory(**options))

    def _check(self, options: Mapping[str, OptionValue]) -> None:
        """Raises `InvalidArgument` for create options that are no parameters of the factory."""
        try:
            taken = signature(self._factory)
        except ValueError:  # some functions in C state none
            return
        try:
            taken.bind(**options)
        except TypeError as error:
            names = ", ".join(taken.parameters) or "none"
            raise InvalidArgument(
                f"the create options {dict(options)!r:.80} do not suit the plugin {self.name!r}: "
                f"{error}; it takes {names}"
            ) from None

    def create_topology(self, name: str, options: Mapping[str, OptionValue]) -> Topology:
        """Returns the devices of `Backend.topologies`; the backend is made without options."""
        from plugrt_sdk.topology import BackendTopology

        return BackendTopology(self._factory(), name, options)
