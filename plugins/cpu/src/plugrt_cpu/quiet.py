"""Importing jaxlib without its chatter, and only a jaxlib that fits."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from plugrt.errors import PluginIncompatible
from plugrt.plugins import distributions

MINIMUM_JAXLIB = (0, 9)
_LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"


def jaxlib_version() -> str:
    """Returns the version of the installed jaxlib; ``none`` when there is none."""
    return distributions.version("jaxlib") or "none"


def jaxlib_minor() -> tuple[int, ...]:
    """Returns the first two numbers of the version; (0, 0) when there is no jaxlib."""
    version = jaxlib_version()
    return (0, 0) if version == "none" else tuple(map(int, version.split(".")[:2]))


def import_jaxlib() -> tuple[Any, Any]:
    """Returns the modules ``jaxlib._jax`` and the one that holds XLA's HLO classes.

    The latter is ``jaxlib._hlo`` since 0.10, and ``jaxlib._jax`` too before.

    XLA reads TF_CPP_MIN_LOG_LEVEL while jaxlib is imported and never again. Unless the user has set
    it, it is 1 (no INFO lines, as JAX has it) for that moment only.

    Raises `PluginIncompatible` when jaxlib is absent, too old, or lacks one of the modules.
    """
    version = jaxlib_version()
    if version != "none" and jaxlib_minor() < MINIMUM_JAXLIB:
        raise PluginIncompatible(_misfit(version))
    ours = _LOG_LEVEL not in os.environ and "jaxlib._jax" not in sys.modules
    if ours:
        os.environ[_LOG_LEVEL] = "1"
    try:
        client = importlib.import_module("jaxlib._jax")
        if hasattr(client, "HloSharding"):
            return client, client
        return client, importlib.import_module("jaxlib._hlo")
    except ImportError as error:
        raise PluginIncompatible(f"{_misfit(version)} (importing it failed: {error})") from error
    finally:
        if ours:
            os.environ.pop(_LOG_LEVEL, None)


def _misfit(version: str) -> str:
    return (
        f"the cpu plugin (plugrt-cpu {distributions.version('plugrt-cpu')}) needs jaxlib "
        f">= {'.'.join(map(str, MINIMUM_JAXLIB))}; installed: {version}. "
        'Cure: pip install --upgrade "jaxlib>=0.9"'
    )
