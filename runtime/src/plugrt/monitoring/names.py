"""The names of the events and durations that plugrt records."""

from __future__ import annotations

from typing import Final

TRACE: Final = "/plugrt/trace"
"""Duration: tracing one Python function into a StableHLO module."""
LOWER: Final = "/plugrt/lower"
"""Duration: passes over a module and its serialisation for a backend."""
COMPILE: Final = "/plugrt/compile"
"""Duration: a backend's compilation of one program."""
CACHE_HIT: Final = "/plugrt/cache/hit"
"""Event: a compiled program was found in the persistent compilation cache."""
CACHE_MISS: Final = "/plugrt/cache/miss"
"""Event: a program was looked for in the persistent compilation cache and not found."""
PLUGIN_LOAD: Final = "/plugrt/plugin/load"
"""Duration: importing one plugin (``plugin=`` its name)."""
CLIENT_CREATED: Final = "/plugrt/client/create"
"""Duration: starting one client (``platform=`` the name it was asked for by)."""
LAUNCH: Final = "/plugrt/launch"
"""Duration: one launch on the host, from arguments to results that need not be there yet.

Recorded where ``config.record_launches`` is set, as it is within `timeline`.
"""
DEVICE_PUT: Final = "/plugrt/device_put"
"""Duration: one call of `plugrt.device_put` (a copy may go on when it returns)."""
READ: Final = "/plugrt/read"
"""Duration: the first read of an array on the host, and the wait for its data if they are not there
(``bytes=`` how many)."""
AWAIT: Final = "/plugrt/await"
"""Duration: one array's `block_until_ready`."""
