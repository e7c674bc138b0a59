"""`this_thread`: whether a launch's Python functions were called within the call that makes it.

Nothing else tells that a launch without results has ended: jaxlib's token can only be waited for,
which takes longer than a small program. XLA runs a program on the thread that launches it or on
another, the whole of it, and in the first case to its end (``execute_inline`` in
``xla/pjrt/cpu/cpu_client.cc``).
"""

from __future__ import annotations

import threading


class _ThisThread(threading.local):
    launch: object = None
    """The launch that the thread made last."""
    called: object = None
    """The launch whose function the thread called last."""


# Process-wide: each thread has its own.
this_thread = _ThisThread()
