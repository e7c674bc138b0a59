"""The entry point ``jax_plugins``, which gives JAX the devices of a server."""

from __future__ import annotations

import os


def initialize() -> None:
    """Registers the platform ``remote`` if PLUGRT_REMOTE is set.

    JAX calls this function in every process that uses devices: without the variable it imports
    nothing. If plugrt-sdk is not installed, it logs a warning with the command that installs it. If
    no server answers and JAX_PLATFORMS does not name ``remote``, it logs a warning: JAX would
    otherwise raise the error of a registered platform, and use no other.
    """
    if not os.environ.get("PLUGRT_REMOTE"):
        return
    from importlib.util import find_spec

    if find_spec("plugrt_sdk") is None:
        from plugrt_remote.log import logger

        logger.warning(
            "PLUGRT_REMOTE is set, and JAX cannot use that server without plugrt-sdk: "
            'pip install "plugrt-remote[jax]"'
        )
        return
    import jax

    from plugrt_remote.remote_plugin import plugin
    from plugrt_sdk.export import offer_to_jax

    named = (getattr(jax.config, "jax_platforms", "") or "").split(",")
    if plugin.name not in named and not plugin.answers():
        return
    offer_to_jax(plugin, donation=True)
