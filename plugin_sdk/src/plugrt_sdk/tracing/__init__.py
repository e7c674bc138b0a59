"""Traces the calls between a host and a PJRT library: ``plugrt trace``, and `wrap_capsule`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plugrt_sdk.tracing.library import library_path, wrap_capsule

__all__ = ["library_path", "wrap_capsule"]


def __getattr__(name: str) -> Any:
    """Imports the C API's declarations on first use: the command line imports this module."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from plugrt_sdk.tracing import library

    return getattr(library, name)
