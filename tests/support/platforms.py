"""The platform of behavioural tests, which name no platform and check its capabilities."""

from __future__ import annotations

import os

from plugrt import get_backend
from plugrt.interface import Capabilities

_HANDED_DOWN = ("JAX_PLATFORMS", "JAX_PJRT_CLIENT_CREATE_OPTIONS")


def platform_environment() -> dict[str, str]:
    """Returns the variables that make a child process use the same platform as this one."""
    given = {name: os.environ[name] for name in _HANDED_DOWN if os.environ.get(name)}
    return {"JAX_PLATFORMS": "cpu", **given}


def capabilities() -> Capabilities:
    """Returns the capabilities that the platform declares."""
    return get_backend().capabilities
