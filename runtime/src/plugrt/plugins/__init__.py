"""Which plugins there are, which of them a name means, and the clients that they start."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from plugrt.plugins.backends import process_backends
from plugrt.plugins.clients import Backends
from plugrt.plugins.plugin import Availability, Plugin
from plugrt.plugins.record import Record

if TYPE_CHECKING:
    from plugrt.plugins import hookspecs as hookspecs
    from plugrt.plugins.hookspecs import hookimpl as hookimpl
    from plugrt.plugins.library import LibraryPlugin as LibraryPlugin

__all__ = [
    "Availability",
    "Backends",
    "LibraryPlugin",
    "Plugin",
    "Record",
    "hookimpl",
    "hookspecs",
    "process_backends",
    "register",
    "table",
]


def register(plugin: Plugin) -> Record:
    """Offers a plugin to this process; see `Backends.register` for the errors."""
    return process_backends().register(plugin)


def table() -> tuple[Record, ...]:
    """Returns a row for each candidate that plugrt knows of; loads nothing."""
    return tuple(process_backends().table.rows)


def __getattr__(name: str) -> Any:
    # These bring pluggy (9 ms to import) and the C API room along.
    if name == "hookspecs":
        return import_module("plugrt.plugins.hookspecs")
    if name == "hookimpl":
        from plugrt.plugins.hookspecs import hookimpl

        return hookimpl
    if name == "LibraryPlugin":
        from plugrt.plugins.library import LibraryPlugin

        return LibraryPlugin
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
