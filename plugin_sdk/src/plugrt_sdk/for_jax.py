"""What JAX finds under the entry point ``jax_plugins``: the NumPy backend as platform ``numpy``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plugrt.interface import Client, OptionValue


def initialize() -> None:
    """Registers the platform where JAX's setting ``jax_platforms`` names it.

    JAX calls it in every process that asks for devices: where it is not named, nothing else is
    imported.
    """
    from plugrt_sdk.export import register_with_jax

    register_with_jax("numpy", _create_client, only_when_named=True, donation=True)


def _create_client(**options: OptionValue) -> Client:
    from plugrt_sdk.numpy_backend import plugin

    return plugin.create_client(options)
