"""Several processes that share the devices of a backend.

Call `initialize` in each of them before any call that starts a backend; then `plugrt.devices`
returns the devices of all. Names and arguments are the same as in ``jax.distributed``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugrt.lifetime.uninterrupted_imports import homes_of, names_from

if TYPE_CHECKING:
    from plugrt.distributed.cluster import ClusterEnvironment
    from plugrt.distributed.initialization import blame, initialize, is_initialized, shutdown
else:  # which a process that launches programs does not need
    _HOMES = {
        "plugrt.distributed.cluster": "ClusterEnvironment",
        "plugrt.distributed.initialization": "blame initialize is_initialized shutdown",
    }
    __getattr__ = names_from(__name__, homes_of(_HOMES))

__all__ = ["ClusterEnvironment", "blame", "initialize", "is_initialized", "shutdown"]


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
