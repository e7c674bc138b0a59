"""Keeps jaxlib's clients from being destroyed in a forked child process, and its deletions free."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Callable

from plugrt_cpu.device import ClientBase

# Process-wide: a fork concerns every client of the process.
_clients: weakref.WeakSet[ClientBase] = weakref.WeakSet()
# Process-wide: like the clients, a fork ends what any of them launched.
_refusals: set[weakref.WeakMethod[Callable[[], None]]] = set()


def keep_after_fork(client: ClientBase) -> None:
    """Keeps jaxlib's client of ``client`` alive in children, until they end."""
    _clients.add(client)


def refuse_after_fork(refuse: Callable[[], None]) -> None:
    """Has a method called in children, as long as its object lives."""
    reference = weakref.WeakMethod(refuse, _refusals.discard)
    _refusals.add(reference)


def _keep_clients_after_fork() -> None:
    """Keeps jaxlib's clients alive until a forked child process ends, where nobody has their locks.

    Destroying one there waits for threads that only the parent has, and crashes (jaxlib 0.10, under
    JAX as well, which warns of forks: https://github.com/jax-ml/jax/pull/18989). A thread of the
    parent's that launches over devices has the lock that deletions take.
    """
    for client in _clients:
        client.launch_lock = threading.RLock()
        if client._raw is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(client._raw))
            client._raw, client.is_forked = None, True  # compiling would wait for these threads
    for reference in list(_refusals):
        refuse = reference()
        if refuse is not None:
            refuse()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep_clients_after_fork)
