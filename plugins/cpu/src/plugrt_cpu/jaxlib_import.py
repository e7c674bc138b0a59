"""Imports jaxlib with INFO log lines off, and checks its version."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from functools import cache
from typing import Any

from plugrt.base.xla_environment import quiet_logging, require_mpi_wrapper
from plugrt.errors import PluginIncompatible
from plugrt.lifetime.uninterrupted_imports import import_native
from plugrt.plugins.packages import distributions

MINIMUM_JAXLIB = (0, 9)


@cache  # each program calls this: searching sys.path costs as much as tracing ten operations
def jaxlib_version() -> str:
    """Returns the version of the installed jaxlib; ``none`` when there is none."""
    return distributions.version("jaxlib") or "none"


def jaxlib_minor(version: str | None = None) -> tuple[int, ...]:
    """Returns the first two numbers of jaxlib's version; (0, 0) when there is no jaxlib."""
    version = version or jaxlib_version()
    return (0, 0) if version == "none" else tuple(map(int, version.split(".")[:2]))


def import_jaxlib(version: str | None = None) -> tuple[Any, Any]:
    """Returns the modules ``jaxlib._jax`` and the one that holds XLA's HLO classes.

    The latter is ``jaxlib._hlo`` since 0.10, and was ``jaxlib._jax`` before. ``version`` is the
    installed one by default.

    XLA reads TF_CPP_MIN_LOG_LEVEL while jaxlib is imported and never again. Unless the user has set
    it, it is 1 (no INFO lines, as in JAX) during the import only.

    Raises `PluginIncompatible` when jaxlib is absent, too old, or lacks one of the modules, and
    `FailedPrecondition` if it would end the process.
    """
    version = version or jaxlib_version()
    if version != "none" and jaxlib_minor(version) < MINIMUM_JAXLIB:
        raise PluginIncompatible(_describe_misfit(version))
    try:
        is_new = "jaxlib._jax" not in sys.modules
        if is_new:
            require_mpi_wrapper()
        with quiet_logging() if is_new else nullcontext():
            client = import_native("jaxlib._jax")[0]
        if hasattr(client, "HloSharding"):
            return client, client
        return client, import_native("jaxlib._hlo")[0]
    except ImportError as error:
        raise PluginIncompatible(
            f"{_describe_misfit(version)} (importing it failed: {error})"
        ) from error


def _describe_misfit(version: str) -> str:
    return (
        f"the cpu plugin (plugrt-cpu {distributions.version('plugrt-cpu')}) needs jaxlib "
        f">= {'.'.join(map(str, MINIMUM_JAXLIB))}; installed: {version}. "
        'Fix: pip install --upgrade "jaxlib>=0.9"'
    )
