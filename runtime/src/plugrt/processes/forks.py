"""Forks: backends that the parent started have no threads in the child, and a warning of that."""

from __future__ import annotations

import os
import warnings
import weakref
from typing import Protocol

# Process-wide: said of the process, after a fork.
in_child: list[bool] = []
"""Not empty in a process that was forked off."""

FORKED = (
    "was started before os.fork(), and the child has none of its threads: start processes before "
    "the backend, or with multiprocessing's 'spawn'"
)

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: in_child.append(True))


class Started(Protocol):
    """Anything that knows the names of the started backends."""

    @property
    def started_names(self) -> tuple[str, ...]: ...


def warn_of_forks(started: Started) -> None:
    """Makes `os.fork` warn, once, while backends of ``started`` live."""
    if not hasattr(os, "register_at_fork"):
        return
    reference = weakref.ref(started)
    warned = False

    def warn() -> None:
        nonlocal warned
        alive = reference()
        if warned or alive is None or not alive.started_names:
            return
        warned = True
        warnings.warn(
            f"os.fork() was called after plugrt started {', '.join(alive.started_names)}: backends "
            "run threads, which the child lacks, so that it cannot use them; start processes "
            "before, or with multiprocessing's 'spawn'",
            RuntimeWarning,
            stacklevel=2,
        )

    os.register_at_fork(before=warn)
