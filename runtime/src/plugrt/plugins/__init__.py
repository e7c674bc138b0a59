"""The plugin registry: installed plugins, platform names, and the clients they start."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from plugrt.frames.argument_errors import with_argument_errors
from plugrt.plugins.plugin import Availability, Plugin
from plugrt.plugins.record import Record
from plugrt.plugins.selection.backends import process_backends
from plugrt.plugins.selection.clients import Backends

if TYPE_CHECKING:
    from plugrt.plugins import hookspecs as hookspecs
    from plugrt.plugins.hookspecs import hookimpl as hookimpl
    from plugrt.plugins.library import LibraryPlugin as LibraryPlugin
    from plugrt.plugins.plugin import LoweringContext as LoweringContext
    from plugrt.plugins.selection.platform_names import (
        backend_pjrt_c_api_version as backend_pjrt_c_api_version,
    )
    from plugrt.plugins.selection.platform_names import (
        backend_stablehlo_version as backend_stablehlo_version,
    )
    from plugrt.plugins.selection.platform_names import backend_xla_version as backend_xla_version
    from plugrt.plugins.selection.platform_names import (
        backends_are_initialized as backends_are_initialized,
    )
    from plugrt.plugins.selection.platform_names import (
        canonicalize_platform as canonicalize_platform,
    )
    from plugrt.plugins.selection.platform_names import (
        expand_platform_alias as expand_platform_alias,
    )
    from plugrt.plugins.selection.platform_names import get_device_backend as get_device_backend
    from plugrt.plugins.selection.platform_names import is_gpu as is_gpu
    from plugrt.plugins.selection.platform_names import is_known_platform as is_known_platform
    from plugrt.plugins.selection.platform_names import known_platforms as known_platforms
    from plugrt.plugins.selection.platform_names import using_pjrt_c_api as using_pjrt_c_api

_PLATFORMS = (
    "backend_pjrt_c_api_version",
    "backend_stablehlo_version",
    "backend_xla_version",
    "backends_are_initialized",
    "canonicalize_platform",
    "expand_platform_alias",
    "get_device_backend",
    "is_gpu",
    "is_known_platform",
    "known_platforms",
    "using_pjrt_c_api",
)
_HOMES = {
    "hookimpl": "plugrt.plugins.hookspecs",  # brings pluggy along, 9 ms to import
    "LibraryPlugin": "plugrt.plugins.library",
    "LoweringContext": "plugrt.plugins.plugin",
    **dict.fromkeys(_PLATFORMS, "plugrt.plugins.selection.platform_names"),
}

__all__ = [
    "Availability",
    "Backends",
    "LibraryPlugin",
    "LoweringContext",
    "Plugin",
    "Record",
    "hookimpl",
    "hookspecs",
    "process_backends",
    "register",
    "table",
    *_PLATFORMS,
]


@with_argument_errors
def register(plugin: Plugin) -> Record:
    """Registers a plugin in this process; raises `RegistrationError` as `Backends.register`."""
    return process_backends().register(plugin)


@with_argument_errors
def table() -> tuple[Record, ...]:
    """Returns a `Record` for each known plugin; loads nothing."""
    return tuple(process_backends().table.rows)


if not TYPE_CHECKING:  # a type checker reports a missing name as an error

    def __getattr__(name: str) -> Any:
        if name == "hookspecs":
            return import_module("plugrt.plugins.hookspecs")
        if name in _HOMES:
            return getattr(import_module(_HOMES[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
