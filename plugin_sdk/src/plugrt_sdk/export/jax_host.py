"""`register_with_jax` and `offer_to_jax`: an exported plugin among JAX's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plugrt.interface import Client, OptionValue
    from plugrt.plugins import Plugin
    from plugrt_sdk.export.capsule import ClientFactory


def register_with_jax(
    name: str,
    client_factory: ClientFactory,
    *,
    priority: int = 400,
    options: Mapping[str, OptionValue] | None = None,
    only_when_named: bool = False,
    donation: bool = False,
    **settings: Any,
) -> bool:
    """Registers a plugin with JAX; the ``initialize`` of a ``jax_plugins`` module calls it.

    ``name`` is the platform, for ``JAX_PLATFORMS`` and in ``jax.devices(name)``. JAX chooses the
    platform of the highest priority by itself (its CPU has 0); ``only_when_named`` registers
    nothing unless JAX's setting ``jax_platforms`` names it. ``donation`` adds the platform to JAX's
    list of platforms on which it donates arguments. ``options`` are passed to ``client_factory`` as
    keyword arguments; the other settings are passed to `export_capsule`. Nothing is started before
    JAX uses the platform. Where ``PJRT_NAMES_AND_LIBRARY_PATHS`` has a library of that name, JAX
    registers the library, and accepts no second one. Returns whether JAX has the platform; raises
    the errors of `export_capsule`.
    """
    import jax

    settings_of_jax: Any = jax.config  # it declares its options at run time
    named = (settings_of_jax.jax_platforms or "").split(",")
    if only_when_named and name not in map(str.strip, named):
        return False
    from jax._src.interpreters import mlir
    from jax._src.xla_bridge import register_plugin

    from plugrt_sdk.export.capsule import export_capsule
    from plugrt_sdk.export.jax_functions import connect_functions

    if not _is_library(name):
        capsule = export_capsule(client_factory, **{"platform": name, **settings})
        register_plugin(name, c_api=capsule, priority=priority, options=options)
        connect_functions(name, capsule)
    if donation and name not in mlir._platforms_with_donation:
        mlir._platforms_with_donation.append(name)
    return True


def _is_library(name: str) -> bool:
    from plugrt.plugins.discovery.env_paths import VARIABLE, parse_libraries

    return any(record.name == name for record in parse_libraries(os.environ.get(VARIABLE, "")))


def offer_to_jax(plugin: Plugin, **settings: Any) -> None:
    """Registers a plugrt plugin with JAX, under plugrt's own rules of choice.

    JAX sees the plugin's name and priority. A plugin that is never the default (its priority is
    negative), or whose probe finds no device, is registered only where JAX's setting
    ``jax_platforms`` names it; then the error is the probe's reason. (JAX itself fails in every
    process where the device of an installed plugin is absent.) ``settings`` are passed to
    `export_capsule`.
    """

    def create(**options: OptionValue) -> Client:
        from plugrt_sdk.export.plugin_client import create_client

        return create_client(plugin, options)

    only_when_named = plugin.priority < 0 or not plugin.probe().available
    register_with_jax(
        plugin.name,
        create,
        priority=plugin.priority,
        only_when_named=only_when_named,
        **settings,
    )
