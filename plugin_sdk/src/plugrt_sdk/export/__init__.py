"""Exports a `plugrt.interface.Client` as a PJRT C API table, for JAX and every other PJRT host.

`export_capsule` gives the table as a ``pjrt_c_api`` capsule: JAX takes it with
``register_plugin(name, c_api=capsule)``, plugrt with ``LibraryPlugin(c_api=capsule)``.
`register_with_jax` does the former, for an entry point of the group ``jax_plugins``.
"""

from plugrt_sdk.export.capsule import ClientFactory, export_capsule
from plugrt_sdk.export.jax_host import register_with_jax

__all__ = ["ClientFactory", "export_capsule", "register_with_jax"]
