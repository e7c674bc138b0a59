"""The queue of launches of each client, which all its programs share."""

from __future__ import annotations

import threading
import weakref

from plugrt.execution.executables.blocking_launches import BlockingLaunches
from plugrt.execution.executables.calling_launch import CallingLaunch
from plugrt.interface import Client
from plugrt.lifetime.forks import call_in_child
from plugrt.plugins.selection import backends

# Process-wide: clients of any plugin have a bound, and hold no state of the execution layer.
_of_clients: weakref.WeakKeyDictionary[Client, BlockingLaunches] = weakref.WeakKeyDictionary()
# Process-wide: it guards the table above.
_lock = threading.Lock()
# Process-wide: in a forked child, the parent's tables.
_of_parents: list[object] = []


def client_launches(client: Client) -> BlockingLaunches:
    """Returns the queue that all programs of a client share."""
    with _lock:
        found = _of_clients.get(client)
        if found is None:
            bound = client.capabilities.max_blocking_launches
            queues = getattr(client, "can_queue_nested_launches", False)
            found = _of_clients[client] = BlockingLaunches(bound, queues_nested=queues)
        return found


def calling_launches() -> list[CallingLaunch]:
    """Returns the launches of all clients that call Python functions and have been made."""
    with _lock:
        queues = [*_of_clients.values()]
    return [launch for queue in queues for launch in queue.made()]


@call_in_child
def _forget_all() -> None:
    """Forgets launches, which are the parent's, and a lock that no thread of a child may hold.

    They are kept: the end of the last reference to a client would call its library, whose threads
    the child lacks.
    """
    global _lock, _of_clients
    _lock = threading.Lock()
    _of_parents.append(_of_clients)
    _of_clients = weakref.WeakKeyDictionary()


def _await_all() -> None:
    """Awaits running launches, since a closed client cannot call back; drops the rest.

    The launches in a queue refer to their client, which would live as long as they are in it.
    """
    for launch in calling_launches():
        launch.finish()
    _of_clients.clear()


backends.on_clear(_await_all)
