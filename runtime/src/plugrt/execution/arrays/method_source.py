"""The provider of the operators and methods of arrays, set by `plugrt` itself.

They are in `plugrt.array_api`, which depends on this package. This module imports nothing, so it
adds almost nothing to the time of ``import plugrt``.
"""

from __future__ import annotations

from collections.abc import Callable

# Process-wide: `plugrt` sets it once.
_load: Callable[[], object] | None = None


def set_loader(load: Callable[[], object]) -> None:
    """Sets the function that imports the module with the methods (`array_methods.install`)."""
    global _load
    _load = load


def load_methods() -> None:
    """Installs the methods; raises `MissingTraceExtra` if jaxlib's bindings are missing."""
    if _load is None:
        raise AssertionError("plugrt/__init__.py has not said where the methods of arrays are")
    _load()
