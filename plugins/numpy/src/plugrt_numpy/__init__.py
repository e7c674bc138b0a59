"""StableHLO on NumPy: a PJRT backend in Python, with any number of virtual devices.

A program is compiled once to Python functions, one line an operation (`functions`); each chapter of
the StableHLO specification is one module of lowerings, and `table` lists them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plugrt_numpy.backend_plugin import plugin

__all__ = ["plugin"]


def __getattr__(name: str) -> object:
    """Imports the plugin when it is first used: JAX imports this package in every process."""
    if name == "plugin":
        from plugrt_numpy import backend_plugin

        return backend_plugin.plugin
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
