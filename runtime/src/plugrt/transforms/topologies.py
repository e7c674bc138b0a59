"""`topology`: devices to compile for that need not be here."""

from __future__ import annotations

from collections.abc import Mapping

from plugrt.errors import InvalidArgument, PluginError
from plugrt.interface import OptionValue, Topology
from plugrt.plugins import selection
from plugrt.plugins.loading import load
from plugrt.plugins.registry import Registry, default_registry


def topology(platform: str, name: str | None = None, /, **options: OptionValue) -> Topology:
    """Returns devices of a platform to compile for: ``topology("tpu", "v5e:2x2")``.

    ``topology("tpu:v5e:2x2")`` is the same. Names and ``options`` are the plugin's; JAX's
    ``jax.experimental.topologies.get_topology_desc`` takes the same ones, the other way round.
    No client is started and no hardware is needed: the plugin is loaded, whatever JAX_PLATFORMS
    says, and its library opened.

    Raises `UnknownPlatform`, the `PluginError` of a plugin that cannot be loaded,
    `Unimplemented` where a plugin has no topologies, and `InvalidArgument` for a bad name.
    """
    return create_topology(platform, name, options, default_registry())


def create_topology(
    platform: str, name: str | None, options: Mapping[str, OptionValue], registry: Registry
) -> Topology:
    """`topology` for a registry of one's own."""
    if name is None:
        platform, _, name = platform.partition(":")
    asked_by = f"topology({platform!r}, {name!r})"
    with registry.lock:
        found = selection.candidates(platform, registry.records, registry.aliases, asked_by)
        errors: list[PluginError] = []
        for record in found:
            try:
                plugin = load(record, registry)
            except PluginError as error:
                errors.append(error)
            else:
                break
        else:
            raise errors[0]
    registry.trace(f"asking {record} for the topology {name!r} with {dict(options)}", record)
    return plugin.create_topology(name, options)


def resolve_topology(asked: Topology | str) -> Topology:
    """Returns a topology as it is, and the one that a string such as ``tpu:v5e:2x2`` names."""
    if isinstance(asked, Topology):
        return asked
    if isinstance(asked, str):
        return topology(asked)
    raise InvalidArgument(
        f"topology= is {asked!r:.80}; expected what plugrt.topology returns, or a string such as "
        "'platform:name'"
    )
