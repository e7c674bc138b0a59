"""The queue of launches of each client, which all its programs share."""

from __future__ import annotations

import threading
import weakref

from plugrt.execution.executables.blocking_launches import BlockingLaunches
from plugrt.execution.executables.calling_launch import CallingLaunch
from plugrt.interface import Client
from plugrt.lifetime.forks import call_in_child
from plugrt.plugins.selection import backends

# Process-wide: a `Client` has no field for the state of the execution layer.
_of_clients: weakref.WeakKeyDictionary[Client, BlockingLaunches] = weakref.WeakKeyDictionary()
# Process-wide: it guards the table above.
_lock = threading.Lock()
# Process-wide: in a forked child, the tables of the parent.
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
    """Replaces the parent's launches, and the lock, which a thread of the parent may hold.

    The launches are kept alive: freeing a client would call its library, whose threads do not exist
    in the child.
    """
    global _lock, _of_clients
    _lock = threading.Lock()
    _of_parents.append(_of_clients)
    _of_clients = weakref.WeakKeyDictionary()


def _await_all() -> None:
    """Awaits running launches, since a closed client cannot call back; drops the queues.

    The launches in a queue refer to their client, and would keep it alive.
    """
    for launch in calling_launches():
        launch.finish()
    _of_clients.clear()


backends.on_clear(_await_all)
