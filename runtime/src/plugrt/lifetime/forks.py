"""Forks: work in the child, and a warning; and objects that live until the process ends."""

from __future__ import annotations

import ctypes
import os
import warnings
import weakref
from collections.abc import Callable
from typing import Protocol, TypeVar

Kept = TypeVar("Kept")

# Process-wide: it describes the process.
in_child: list[bool] = []
"""Not empty in a process that was forked off."""

FORKED = (
    "was started before os.fork(), and the child has none of its threads: start processes before "
    "the backend, or with multiprocessing's 'spawn'"
)


def call_in_child(function: Callable[[], object]) -> Callable[[], object]:
    """Decorator: calls a function in each forked child, where the system forks processes."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)
    return function


call_in_child(lambda: in_child.append(True))


def keep_forever(kept: Kept) -> Kept:
    """Keeps an object alive until the process ends, and returns it.

    At exit the interpreter clears modules. A library may call a function, or use memory of the
    host, after that.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    return kept


class Started(Protocol):
    """Any object with the names of the started backends."""

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
