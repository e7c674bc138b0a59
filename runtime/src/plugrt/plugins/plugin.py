"""`Plugin`: what a device package offers so that plugrt finds, chooses and starts its backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plugrt.errors import Unimplemented
from plugrt.interface import Client, OptionValue, Topology

if TYPE_CHECKING:
    from plugrt.config import Config


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a plugin can work on this machine, and the reason and the cure if it cannot."""

    available: bool
    reason: str = ""
    cure: str = ""

    @classmethod
    def yes(cls, reason: str = "") -> Availability:
        """The plugin can work here."""
        return cls(True, reason)

    @classmethod
    def no(cls, reason: str, cure: str = "") -> Availability:
        """The plugin cannot work here, for this reason; ``cure`` says what would help."""
        return cls(False, reason, cure)


class Plugin:
    """A backend that can be found, chosen and started. Subclass it and offer an instance.

    An instance is cheap: importing the module that defines it must not import or open a native
    library. Offer it through the entry-point group ``plugrt.plugins`` (value ``module:object``)
    or with ``plugrt.plugins.register(plugin)``.
    """

    name: str = ""
    """The name that users select with ``JAX_PLATFORMS``; unique among installed plugins."""
    platform: str = ""
    """The platform its client reports, when that differs from ``name``."""
    priority: int = 400
    """The highest available priority is the default backend (cpu 0, tpu 300, cuda 500)."""
    experimental: bool = False
    """Whether choosing it prints one warning that it is experimental."""
    aliases: Sequence[str] = ()
    """Other names that mean this plugin among others, such as ``gpu``."""
    waits_for: str = ""
    """What a slow start is likely to wait for, for the warning about it."""

    def probe(self) -> Availability:
        """Tells whether the hardware seems to be there.

        Called before anything is loaded: opens no library, touches no network, takes under
        100 ms.
        """
        return Availability.yes()

    def client_options(self, config: Config) -> dict[str, OptionValue]:
        """Returns the create options that follow from the configuration."""
        return {}

    def create_client(
        self, options: Mapping[str, OptionValue], distributed: Any | None = None
    ) -> Client:
        """Starts the backend. ``distributed`` is None in a single process."""
        raise Unimplemented(f"plugin {self.name!r} does not implement create_client")

    def create_topology(self, name: str, options: Mapping[str, OptionValue]) -> Topology:
        """Returns the topology of that name, for compiling without the device. Optional."""
        raise Unimplemented(f"plugin {self.name!r} cannot compile for absent devices")

    def __repr__(self) -> str:
        return f"<plugin {self.name!r} of {type(self).__module__}>"
