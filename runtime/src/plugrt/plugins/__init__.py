"""The plugin registry: installed plugins, platform names, and the clients they start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugrt.lifetime.uninterrupted_imports import homes_of, names_from

if TYPE_CHECKING:
    from plugrt.plugins import hookspecs
    from plugrt.plugins.hookspecs import hookimpl
    from plugrt.plugins.library import LibraryPlugin
    from plugrt.plugins.plugin import Availability, LoweringContext, Plugin
    from plugrt.plugins.record import Record
    from plugrt.plugins.selection.backends import process_backends, register, table
    from plugrt.plugins.selection.clients import Backends
    from plugrt.plugins.selection.platform_names import (
        backend_pjrt_c_api_version,
        backend_stablehlo_version,
        backend_xla_version,
        backends_are_initialized,
        canonicalize_platform,
        expand_platform_alias,
        get_device_backend,
        is_gpu,
        is_known_platform,
        known_platforms,
        using_pjrt_c_api,
    )

_HOMES = homes_of(
    {
        "plugrt.plugins.hookspecs": "hookimpl hookspecs",  # brings pluggy along, 9 ms to import
        "plugrt.plugins.library": "LibraryPlugin",
        "plugrt.plugins.plugin": "Availability LoweringContext Plugin",
        "plugrt.plugins.record": "Record",
        "plugrt.plugins.selection.backends": "process_backends register table",
        "plugrt.plugins.selection.clients": "Backends",
        "plugrt.plugins.selection.platform_names": "backend_pjrt_c_api_version "
        "backend_stablehlo_version backend_xla_version backends_are_initialized "
        "canonicalize_platform expand_platform_alias get_device_backend is_gpu is_known_platform "
        "known_platforms using_pjrt_c_api",
    }
)

__all__ = [
    "Availability", "Backends", "LibraryPlugin", "LoweringContext", "Plugin", "Record",
    "backend_pjrt_c_api_version", "backend_stablehlo_version", "backend_xla_version",
    "backends_are_initialized", "canonicalize_platform", "expand_platform_alias",
    "get_device_backend", "hookimpl", "hookspecs", "is_gpu", "is_known_platform", "known_platforms",
    "process_backends", "register", "table", "using_pjrt_c_api",
]  # fmt: skip

if not TYPE_CHECKING:  # a type checker reports a missing name as an error
    __getattr__ = names_from(__name__, _HOMES)


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
