"""Several processes that share the devices of a backend.

Call `initialize` in each of them before any call that starts a backend; then `plugrt.devices`
returns the devices of all. Names and arguments are the same as in ``jax.distributed``.
"""

from __future__ import annotations

from plugrt.distributed.cluster import ClusterEnvironment
from plugrt.distributed.initialization import blame, initialize, is_initialized, shutdown

__all__ = ["ClusterEnvironment", "blame", "initialize", "is_initialized", "shutdown"]
