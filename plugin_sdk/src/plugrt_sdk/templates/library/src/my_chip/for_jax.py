"""The module of the entry point ``jax_plugins``, which JAX imports; it needs no plugrt."""

from __future__ import annotations

from my_chip import NAME, PRIORITY
from my_chip.library import find_library
from my_chip.probe import find_fault


def initialize() -> None:
    """Offers the library to JAX, which calls this in each process that requests devices.

    JAX opens every registered library and fails if its device is absent, so this registers the
    library only if it can be used.
    """
    import jax

    platforms = jax.config.jax_platforms
    if NAME in platforms.split(",") if platforms else PRIORITY >= 0 and find_fault() is None:
        from jax._src.xla_bridge import register_plugin

        register_plugin(NAME, priority=PRIORITY, library_path=find_library())
