"""Exports a `plugrt.interface.Client` as a PJRT C API table, for JAX and every other PJRT host.

`export_capsule` returns the table as a ``pjrt_c_api`` capsule: pass it to JAX's
``register_plugin(name, c_api=capsule)`` or to plugrt's ``LibraryPlugin(c_api=capsule)``.
`register_with_jax` does the former, for an entry point of the group ``jax_plugins``, and
`offer_to_jax` does it for an object that implements plugrt's `Plugin`. `export_library` writes a
shared library that exports ``GetPjrtApi``, for hosts that load a plugin from a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugrt_sdk.lazy_names import names_from

if TYPE_CHECKING:
    from plugrt_sdk.export.capsule import ClientFactory, export_capsule
    from plugrt_sdk.export.jax_host import offer_to_jax, register_with_jax
    from plugrt_sdk.export.library import export_library

__all__ = [
    "ClientFactory",
    "export_capsule",
    "export_library",
    "offer_to_jax",
    "register_with_jax",
]

if not TYPE_CHECKING:  # a type checker reports a missing name as an error
    # JAX runs `register_with_jax` in every process that requests devices: it must cost nothing.
    __getattr__ = names_from(
        __name__,
        {
            "ClientFactory": "plugrt_sdk.export.capsule",
            "export_capsule": "plugrt_sdk.export.capsule",
            "export_library": "plugrt_sdk.export.library",
            "offer_to_jax": "plugrt_sdk.export.jax_host",
            "register_with_jax": "plugrt_sdk.export.jax_host",
        },
    )
