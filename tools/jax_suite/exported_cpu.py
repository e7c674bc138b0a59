"""A pytest plugin (``-p exported_cpu``): the cpu plugin as JAX's platform ``exported``, if named.

JAX has the platform's callbacks only where it is registered under a name of its own, unlike a
library that ``PJRT_NAMES_AND_LIBRARY_PATHS`` names, whose client says ``cpu``.
"""

from __future__ import annotations

from plugrt.interface import Client, OptionValue
from plugrt_cpu import plugin
from plugrt_sdk.export import register_with_jax


def _create_client(**options: OptionValue) -> Client:
    return plugin.create_client(options)


register_with_jax(
    "exported", _create_client, options={"num_devices": 8}, only_when_named=True, donation=True
)
