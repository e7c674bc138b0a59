"""The plugins numpy and cpu as exported libraries, as ``module:name`` for the conformance kit."""

from __future__ import annotations

import os
from pathlib import Path

from plugrt.plugins import LibraryPlugin
from plugrt_sdk.export import export_library


def numpy() -> LibraryPlugin:
    """The NumPy backend through the C API."""
    return _exported("numpy")


def cpu() -> LibraryPlugin:
    """jaxlib's client through the C API."""
    return _exported("cpu")


def _exported(name: str) -> LibraryPlugin:
    """Writes the library into the run's own folder: some kilobytes, which replace earlier ones."""
    file = Path(os.environ["PLUGRT_CACHE_DIR"], f"libexported_{name}.so")
    return LibraryPlugin(f"exported_{name}", str(export_library(name, file)))
