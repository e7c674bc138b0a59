"""Whether this process was forked off: backends that its parent started have no threads here."""

from __future__ import annotations

import os

# Process-wide: said of the process, after a fork.
in_child: list[bool] = []
"""Not empty in a process that was forked off."""

FORKED = (
    "was started before os.fork(), and the child has none of its threads: start processes before "
    "the backend, or with multiprocessing's 'spawn'"
)

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: in_child.append(True))
