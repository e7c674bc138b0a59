"""The provider of the operators and methods of arrays, set by `plugrt` itself.

They are in `plugrt.array_api`, which depends on this package. This module imports nothing, so it
adds almost nothing to the time of ``import plugrt``.
"""

from __future__ import annotations

from collections.abc import Callable

# Process-wide: set once, by the package that comes after this one.
_load: Callable[[], object] | None = None


def set_loader(load: Callable[[], object]) -> None:
    """Says what imports the module that installs the methods (`array_methods.install`)."""
    global _load
    _load = load


def load_methods() -> None:
    """Has the methods installed; `MissingTraceExtra` where jaxlib's bindings are missing."""
    if _load is None:
        raise AssertionError("plugrt/__init__.py has not said where the methods of arrays are")
    _load()
