"""The platform that behavioural tests run on; they name no other, and ask it what it can do."""

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
    """Returns what the platform says it can do."""
    return get_backend().capabilities
