"""`this_thread`: whether a launch's Python functions were called within the call that makes it.

jaxlib has no other sign that a launch without results has ended: its token can only be waited for,
which costs more than a small program. XLA runs a whole program either on the thread that launches
it or on another; in the first case the program has ended when the call returns (``execute_inline``
in ``xla/pjrt/cpu/cpu_client.cc``).
"""

from __future__ import annotations

import threading


class _ThisThread(threading.local):
    launch: object = None
    """The last launch that the thread made."""
    called: object = None
    """The launch whose function the thread called last."""


# Process-wide: each thread has its own.
this_thread = _ThisThread()
