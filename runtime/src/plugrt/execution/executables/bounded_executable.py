"""`bound_launches`: an executable whose launches respect the bound of its client.

See `plugrt.execution.executables.blocking_launches`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from plugrt.errors import PjrtError
from plugrt.execution.executables.blocking_launches import BlockingLaunches, Launched
from plugrt.execution.executables.client_launches import client_launches
from plugrt.interface import (
    Client,
    Device,
    Executable,
    ExecuteOptions,
    LaunchSteps,
    LoadedExecutable,
    Program,
    Shards,
)


class WrappedExecutable(LoadedExecutable):
    """A loaded executable that passes all but `execute` on to another one."""

    __slots__ = ("_loaded", "addressable_devices", "client", "executable")

    addressable_devices: Sequence[Device]
    client: Client
    executable: Executable

    def __init__(self, loaded: LoadedExecutable) -> None:
        self._loaded = loaded
        self.addressable_devices = loaded.addressable_devices
        self.client = loaded.client
        self.executable = loaded.executable

    def delete(self) -> None:
        self._loaded.delete()

    def is_deleted(self) -> bool:
        return self._loaded.is_deleted()


# Names of collectives in StableHLO (text, bytecode, portable artifact) and HLO. A false match, such
# as a function of that name, bounds launches needlessly: correct, and hardly slower.
_EXCHANGES = re.compile(
    rb"all[_-](?:reduce|gather|to[_-]all)|reduce[_-]scatter|collective[_-](?:permute|broadcast)"
)


def bound_launches(loaded: LoadedExecutable, program: Program) -> LoadedExecutable:
    """Returns the executable with its client's bound applied, or unchanged if it needs none."""
    if loaded.client.capabilities.max_blocking_launches is None:
        return loaded
    executable = loaded.executable
    several = executable.num_replicas * executable.num_partitions > 1
    exchanges = several and has_exchange(executable, program)
    return BoundedExecutable(loaded, client_launches(loaded.client), exchanges)


def has_exchange(executable: Executable, program: Program) -> bool:
    """Whether the devices of a launch wait for each other; True if the program cannot be read.

    With several partitions the compiler adds collectives, which are in the optimised program.
    """
    if executable.num_partitions > 1:
        try:
            program = executable.optimized_program()
        except PjrtError:
            return True
    return _EXCHANGES.search(program.code) is not None


class CountedLauncher:
    """Launches on one device by ``free``; counts the launch while a launch in ``calling`` runs."""

    __slots__ = ("_devices", "_launches", "calling", "free")

    def __init__(
        self,
        free: Callable[[object], object],
        launches: BlockingLaunches,
        devices: Sequence[Device],
    ) -> None:
        self.free = free
        self.calling = launches.calling
        self._launches = launches
        self._devices = devices

    def __call__(self, arguments: Any) -> Any:
        if self.calling:
            return self._launches.launch_on_one(self.free, arguments, self._devices)
        return self.free(arguments)


def split_launcher(
    launch: Callable[[Any], object],
) -> tuple[Callable[[object], Any], Sequence[object]]:
    """Returns a launcher without the bound, and the client's launches that require the bound.

    A caller uses the launcher while there are no such launches. It tests the list itself, since
    without the core each Python call costs time.
    """
    return (launch.free, launch.calling) if type(launch) is CountedLauncher else (launch, ())


class BoundedExecutable(WrappedExecutable):
    """A loaded executable whose launches respect the bound of its client."""

    __slots__ = ("_collective", "_launches", "_parts")

    def __init__(
        self, loaded: LoadedExecutable, launches: BlockingLaunches, collective: bool
    ) -> None:
        super().__init__(loaded)
        self._launches = launches
        self._collective = collective
        self._parts = self.executable.num_replicas * self.executable.num_partitions

    @property
    def launcher(self) -> Callable[[Sequence[Shards]], Sequence[Shards]]:
        if self._collective:
            return self._launches.launcher(self._loaded)
        free = self._loaded.launcher
        if self._parts == 1:
            return self._make_counted_launcher(free)
        launches, bounded = self._launches, self.execute

        def launch(arguments: Sequence[Shards]) -> Sequence[Shards]:
            return bounded(arguments) if launches else free(arguments)

        return launch

    def _make_counted_launcher(self, free: Callable[[Any], Any]) -> CountedLauncher:
        return CountedLauncher(free, self._launches, self.addressable_devices)

    @property
    def loaded(self) -> LoadedExecutable:
        """The executable without a bound."""
        return self._loaded

    @property
    def launch_steps(self) -> LaunchSteps | None:
        steps = self._loaded.launch_steps if self._parts == 1 else None
        return steps and replace(steps, unless=(*steps.unless, self._launches.calling))

    def host_launcher(
        self, parts: Mapping[int, Sequence[tuple[slice | int, ...]]]
    ) -> Callable[[list[object]], Launched] | None:
        launches, collective = self._launches, self._collective
        free = self._loaded.host_launcher(parts)
        if free is None:
            return None
        devices = self.addressable_devices

        def launch(arguments: list[object]) -> Launched:
            if collective or launches:
                return launches.launch(free, collective, arguments, devices=devices)
            return free(arguments)

        return launch

    def compiled_launcher(self, launcher: object) -> object:
        """Returns a launcher of the compiled core that applies the bound to one of ``loaded``."""
        return self._launches.compiled_launcher(launcher, self._collective, self._parts)

    def execute(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> Sequence[Shards]:
        devices = self.addressable_devices
        if self._parts == 1:
            if not self._launches.calling:
                return self._loaded.execute(arguments, options)
            results: Sequence[Shards] = self._launches.launch_on_one(
                lambda given: self._loaded.execute(given, options), arguments, devices
            )
            return results
        if self._collective or self._launches:
            launch = self._loaded.execute_with_wait
            return self._launches.launch(
                launch, self._collective, arguments, options, devices=devices
            )[0]
        return self._loaded.execute(arguments, options)

    def execute_with_wait(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> tuple[Sequence[Shards], Callable[[], None]]:
        return self._loaded.execute_with_wait(arguments, options)
