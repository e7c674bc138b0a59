"""Topologies that hosts make: devices that programs are compiled for, present or not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from plugrt.errors import ArgumentTypeError, InvalidArgument
from plugrt.interface import OptionValue, Topology
from plugrt_sdk.export.describing import describe_device

TopologyFactory = Callable[[str, Mapping[str, OptionValue]], Topology]
"""Makes the topology of a name and options, as `plugrt.plugins.Plugin.create_topology` does."""


class MadeTopology:
    """A topology, and the name and options to make it again."""

    def __init__(self, topology: Topology, name: str, options: Mapping[str, OptionValue]) -> None:
        self._topology = topology
        self._name = name
        self._options = options

    def topology(self) -> Topology:
        """Returns the plugin's object, as `Client.topology` does."""
        return self._topology

    def serialize(self) -> bytes:
        """Returns its name and options, for `read_topology`."""
        return json.dumps({"topology": self._name, "options": dict(self._options)}).encode()


def make_topology(
    factory: TopologyFactory,
    name: str,
    options: Mapping[str, OptionValue],
    platform: str | None,
) -> tuple[Any, ...]:
    """Makes a topology and describes it: its name, version, devices and attributes."""
    made = factory(name, options)
    if not isinstance(made, Topology):
        raise ArgumentTypeError(
            f"the topology factory of the exported plugin returned {made!r:.60}, no Topology"
        )
    shown = platform or made.platform
    return (
        MadeTopology(made, name, options),
        shown,
        made.platform_version,
        [describe_device(device, shown) for device in made.devices],
        dict(made.attributes),
    )


def read_topology(
    factory: TopologyFactory, serialized: bytes, platform: str | None
) -> tuple[Any, ...]:
    """Makes a topology from its serialised name and options, and describes it."""
    try:
        stated = json.loads(serialized)
        name, options = stated["topology"], stated["options"]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidArgument(
            f"{serialized[:60]!r} is not a topology that a plugin exported by plugrt_sdk serialised"
        ) from error
    return make_topology(factory, name, options, platform)
