"""`topology`: descriptions of devices to compile for, which need not be present."""

from __future__ import annotations

from plugrt.errors import InvalidArgument
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import OptionValue, Topology
from plugrt.plugins.selection.backends import process_backends


@with_argument_errors
def topology(platform: str, name: str | None = None, /, **options: OptionValue) -> Topology:
    """Returns devices of a platform to compile for: ``topology("tpu", "v5e:2x2")``.

    ``topology("tpu:v5e:2x2")`` is the same. Names and ``options`` are the plugin's; JAX's
    ``jax.experimental.topologies.get_topology_desc`` accepts the same ones, in reverse order. No
    client is started and no hardware is needed: the plugin is loaded, whatever JAX_PLATFORMS says,
    and its library opened.

    Raises `UnknownPlatform`, the `PluginError` of a plugin that cannot be loaded, `Unimplemented`
    for a plugin without topologies, and `InvalidArgument` for a bad name.
    """
    if name is None:
        platform, _, name = platform.partition(":")
    return process_backends().topology(platform, name, options)


def resolve_topology(asked: Topology | str) -> Topology:
    """Returns a topology unchanged, and for a string such as ``tpu:v5e:2x2`` its topology."""
    if isinstance(asked, Topology):
        return asked
    if isinstance(asked, str):
        return topology(asked)
    raise InvalidArgument(
        f"topology= is {asked!r:.80}; expected what plugrt.topology returns, or a string such as "
        "'platform:name'"
    )
