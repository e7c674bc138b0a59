"""Launches whose devices exchange data, held to the number that a backend can have under way."""

from __future__ import annotations

import re
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence

from plugrt.interface import (
    Client,
    Device,
    Executable,
    ExecuteOptions,
    LoadedExecutable,
    Program,
    Shards,
)
from plugrt.plugins import backends

# As StableHLO (text, bytecode, portable artifact) and HLO name the operations. What else has the
# name, a function say, is held to the bound for nothing, which is right and hardly slower.
_EXCHANGES = re.compile(
    rb"all[_-](?:reduce|gather|to[_-]all)|reduce[_-]scatter|collective[_-](?:permute|broadcast)"
)


class CollectiveLaunches:
    """The last launches on several devices of one client, from its oldest collective on.

    There are never more than ``bound`` of them under way. The oldest is waited for before one more
    is launched, whatever programs they are of and whichever threads launch them; each is launched
    on all its devices before the next. Launches that exchange nothing count as long as one that
    does is before them, since they take the same places in the devices' queues.
    """

    __slots__ = ("_collectives", "_launches", "_lock", "bound")

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self._lock = threading.Lock()
        self._launches: deque[tuple[Callable[[], None], bool]] = deque()
        self._collectives = 0

    def __bool__(self) -> bool:
        """Whether a collective may be under way."""
        return bool(self._launches)

    def launch(
        self,
        loaded: LoadedExecutable,
        arguments: Sequence[Shards],
        options: ExecuteOptions | None,
        collective: bool,
    ) -> Sequence[Shards]:
        """Returns what ``loaded.execute`` gives, after waiting for room."""
        with self._lock:
            while len(self._launches) >= self.bound:
                self._await_oldest()
            results, wait = loaded.execute_with_wait(arguments, options)
            if collective or self._launches:
                self._launches.append((wait, collective))
                self._collectives += collective
        return results

    def _await_oldest(self) -> None:
        wait, collective = self._launches[0]
        wait()  # before it leaves the row: an interrupt may end the waiting
        self._launches.popleft()
        self._collectives -= collective
        if not self._collectives:
            self._launches.clear()


_of_clients: weakref.WeakKeyDictionary[Client, CollectiveLaunches] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def client_launches(client: Client, bound: int) -> CollectiveLaunches:
    """Returns the one row of launches that all programs of a client share."""
    with _lock:
        return _of_clients.setdefault(client, CollectiveLaunches(bound))


backends.on_clear(_of_clients.clear)


def bound_launches(loaded: LoadedExecutable, program: Program) -> LoadedExecutable:
    """Returns the executable held to its client's bound, itself where there is nothing to hold."""
    bound = loaded.client.capabilities.max_collectives_in_flight
    executable = loaded.executable
    if bound is None or executable.num_replicas * executable.num_partitions == 1:
        return loaded
    # A compiler that divides a program over partitions makes the exchanges itself.
    collective = executable.num_partitions > 1 or _EXCHANGES.search(program.code) is not None
    return BoundedExecutable(loaded, client_launches(loaded.client, bound), collective)


class BoundedExecutable(LoadedExecutable):
    """A loaded executable whose launches keep to the bound of its client."""

    __slots__ = ("_collective", "_launches", "_loaded")

    def __init__(
        self, loaded: LoadedExecutable, launches: CollectiveLaunches, collective: bool
    ) -> None:
        self._loaded = loaded
        self._launches = launches
        self._collective = collective

    @property
    def client(self) -> Client:
        return self._loaded.client

    @property
    def executable(self) -> Executable:
        return self._loaded.executable

    @property
    def addressable_devices(self) -> Sequence[Device]:
        return self._loaded.addressable_devices

    def execute(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> Sequence[Shards]:
        if self._collective or self._launches:
            return self._launches.launch(self._loaded, arguments, options, self._collective)
        return self._loaded.execute(arguments, options)

    def execute_with_wait(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> tuple[Sequence[Shards], Callable[[], None]]:
        return self._loaded.execute_with_wait(arguments, options)

    def delete(self) -> None:
        self._loaded.delete()

    def is_deleted(self) -> bool:
        return self._loaded.is_deleted()
