"""Where the operators and methods of arrays come from.

They lie in a later room, `plugrt.array_api`, which `plugrt` itself names here: this module knows no
other, so that it costs ``import plugrt`` next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable

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
