"""A bound on the collective launches in flight, for backends that declare one."""

from __future__ import annotations

import re
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from plugrt.compiled_core import core, new_lock
from plugrt.errors import PjrtError
from plugrt.execution.wrapped_executable import WrappedExecutable
from plugrt.interface import (
    Client,
    Executable,
    ExecuteOptions,
    LoadedExecutable,
    Program,
    Shards,
)
from plugrt.plugins import backends

# Names of collectives in StableHLO (text, bytecode, portable artifact) and HLO. A false match, such
# as a function of that name, is bounded needlessly: correct, and hardly slower.
_EXCHANGES = re.compile(
    rb"all[_-](?:reduce|gather|to[_-]all)|reduce[_-]scatter|collective[_-](?:permute|broadcast)"
)


Launched = tuple[Sequence[Shards], Callable[[], None]]
"""The results of a launch, and what waits for its end."""


class CollectiveLaunches:
    """A queue of one client's multi-device launches, from the oldest collective in flight on.

    At most ``bound`` launches are in flight, over all programs and threads: the oldest is awaited
    before another is launched. Each is enqueued on all its devices before the next. Launches
    without collectives count while a collective precedes them: they share the devices' queues.
    """

    __slots__ = ("_collectives", "_launches", "_lock", "bound")

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self._lock = new_lock()  # not plain: a finaliser or a signal handler may launch meanwhile
        self._launches: deque[tuple[Callable[[], None], bool]] = deque()

    def __bool__(self) -> bool:
        """Whether a collective may be in flight."""
        return bool(self._launches)

    def launch(
        self, execute: Callable[..., Launched], collective: bool, *arguments: Any
    ) -> Launched:
        """Returns what an ``execute_with_wait`` returns, called once there is a free slot."""
        with self._lock:
            while len(self._launches) >= self.bound:
                self._await_oldest()
            launched = execute(*arguments)
            if collective or self._launches:
                self._launches.append((launched[1], collective))
        return launched

    def launcher(self, loaded: LoadedExecutable) -> Callable[[Sequence[Shards]], Sequence[Shards]]:
        """Returns `launch` for collectives of one executable: one function, the path of each call.

        After a launch on several devices the processor has forgotten what ran before, so that each
        function on the way costs some microseconds instead of a tenth of one.
        """
        lock, launches, bound, execute = (
            self._lock, self._launches, self.bound, loaded.execute_with_wait
        )  # fmt: skip

        def launch(arguments: Sequence[Shards]) -> Sequence[Shards]:
            with lock:
                while len(launches) >= bound:
                    self._await_oldest()
                results, wait = execute(arguments)
                launches.append((wait, True))
            return results

        return launch

    def compiled_launcher(self, launcher: Any, collective: bool) -> Any:
        """Returns what launches as `launch` does, in the compiled core, by a launcher of it."""
        return core.BoundedLauncher(
            launcher=launcher,
            queue=self._launches,
            lock=self._lock,
            bound=self.bound,
            exchanges=collective,
        )

    def _await_oldest(self) -> None:
        oldest = self._launches[0]
        oldest[0]()  # before it is removed: an interrupt may end the waiting
        if not self._launches or self._launches[0] is not oldest:
            return  # a launch of a finaliser has taken it out
        self._launches.popleft()
        if not any(collective for _, collective in self._launches):
            self._launches.clear()


# Process-wide: launches of all threads count together; goes with its client.
_of_clients: weakref.WeakKeyDictionary[Client, CollectiveLaunches] = weakref.WeakKeyDictionary()
# Process-wide: guards `_of_clients`.
_lock = threading.Lock()


def client_launches(client: Client, bound: int) -> CollectiveLaunches:
    """Returns the queue that all programs of a client share."""
    with _lock:
        return _of_clients.setdefault(client, CollectiveLaunches(bound))


backends.on_clear(_of_clients.clear)


def bound_launches(loaded: LoadedExecutable, program: Program) -> LoadedExecutable:
    """Returns the executable with its client's bound applied; itself where no bound is needed."""
    bound = loaded.client.capabilities.max_collectives_in_flight
    executable = loaded.executable
    if bound is None or executable.num_replicas * executable.num_partitions == 1:
        return loaded
    launches = client_launches(loaded.client, bound)
    return BoundedExecutable(loaded, launches, has_exchange(executable, program))


def has_exchange(executable: Executable, program: Program) -> bool:
    """Whether the devices of a launch wait for each other; True where that cannot be read.

    With several partitions the compiler adds collectives, which its optimised program has.
    """
    if executable.num_partitions > 1:
        try:
            program = executable.optimized_program()
        except PjrtError:
            return True
    return _EXCHANGES.search(program.code) is not None


class BoundedExecutable(WrappedExecutable):
    """A loaded executable whose launches respect the bound of its client."""

    __slots__ = ("_collective", "_launches")

    def __init__(
        self, loaded: LoadedExecutable, launches: CollectiveLaunches, collective: bool
    ) -> None:
        super().__init__(loaded)
        self._launches = launches
        self._collective = collective

    @property
    def launcher(self) -> Callable[[Sequence[Shards]], Sequence[Shards]]:
        if self._collective:
            return self._launches.launcher(self._loaded)
        launches, bounded, free = self._launches, self.execute, self._loaded.launcher

        def launch(arguments: Sequence[Shards]) -> Sequence[Shards]:
            return bounded(arguments) if launches else free(arguments)

        return launch

    @property
    def loaded(self) -> LoadedExecutable:
        """The executable without a bound."""
        return self._loaded

    def part_lending_launcher(
        self, lent: Mapping[int, Sequence[tuple[slice | int, ...]]]
    ) -> Callable[[list[Any]], Launched] | None:
        launches, collective = self._launches, self._collective
        free = self._loaded.part_lending_launcher(lent)
        if free is None:
            return None

        def launch(arguments: list[Any]) -> Launched:
            if collective or launches:
                return launches.launch(free, collective, arguments)
            return free(arguments)

        return launch

    def compiled_launcher(self, launcher: Any) -> Any:
        """Returns a launcher of the compiled core that applies the bound to one of ``loaded``."""
        return self._launches.compiled_launcher(launcher, self._collective)

    def execute(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> Sequence[Shards]:
        if self._collective or self._launches:
            launch = self._loaded.execute_with_wait
            return self._launches.launch(launch, self._collective, arguments, options)[0]
        return self._loaded.execute(arguments, options)

    def execute_with_wait(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> tuple[Sequence[Shards], Callable[[], None]]:
        return self._loaded.execute_with_wait(arguments, options)
