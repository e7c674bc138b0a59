"""Keeps jaxlib's clients from being destroyed in a forked child process, and its deletions free."""

from __future__ import annotations

import threading
from typing import Protocol

from plugrt.base.weak_keys import WeakKeys
from plugrt.lifetime.forks import call_in_child, keep_forever
from plugrt_cpu import adapter
from plugrt_cpu.device import ClientBase

# Process-wide: a fork concerns every client of the process.
_clients: WeakKeys[ClientBase, None] = WeakKeys()


class _Launching(Protocol):
    """An executable that refuses launches in a forked child."""

    def refuse_launches(self) -> None: ...


# Process-wide: like the clients, a fork concerns every executable of the process.
_executables: WeakKeys[_Launching, None] = WeakKeys()


def keep_after_fork(client: ClientBase) -> None:
    """Keeps jaxlib's client of ``client`` alive in children, until they end."""
    _clients.keep(client, None)


def refuse_after_fork(executable: _Launching) -> None:
    """Calls the executable's `refuse_launches` in children, as long as it lives."""
    _executables.keep(executable, None)


@call_in_child
def _keep_clients_after_fork() -> None:
    """Keeps jaxlib's clients alive until a forked child ends, while no thread holds their locks.

    Destroying one there waits for threads that only the parent has, and crashes (jaxlib 0.10, under
    JAX as well, which warns of forks: https://github.com/jax-ml/jax/pull/18989). A parent's thread
    that launches over devices holds the lock that deletions need.
    """
    # Workaround for jaxlib-fork
    for client in _clients.alive():
        client.launch_lock = threading.RLock()
        if client._raw is not None:
            adapter.forked_clients.append(client._raw)
            keep_forever(client._raw)
            client._raw, client.is_forked = None, True  # compiling would wait for these threads
    for executable in _executables.alive():
        executable.refuse_launches()
