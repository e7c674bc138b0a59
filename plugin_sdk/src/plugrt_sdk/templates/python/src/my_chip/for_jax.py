"""The module of the entry point ``jax_plugins``, which JAX imports."""

from __future__ import annotations


def initialize() -> None:
    """Offers the device to JAX, which calls this in each process that requests devices."""
    from plugrt_sdk.export import offer_to_jax

    from my_chip.for_plugrt import plugin

    offer_to_jax(plugin)
