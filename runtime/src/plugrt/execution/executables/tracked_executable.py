"""`track_launches`: an executable whose launches are ordered and awaited, if it calls Python.

A program whose devices each call Python is awaited in its call (`WatchedLaunches`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from plugrt.callbacks.host_callbacks import forget_failures
from plugrt.callbacks.shared_callbacks import SharedCallback
from plugrt.errors import PjrtError
from plugrt.execution.executables.callback_refusals import refuse_callbacks
from plugrt.execution.executables.calling_launch import CallingLaunch
from plugrt.execution.executables.client_launches import client_launches
from plugrt.execution.executables.custom_call_targets import handlers_in
from plugrt.execution.executables.effects import await_ordered, remember_launch
from plugrt.execution.executables.watched_launches import WatchedLaunches, functions_to_watch
from plugrt.execution.executables.wrapped_executable import WrappedExecutable
from plugrt.interface import ExecuteOptions, LoadedExecutable, Program, Shards
from plugrt.lifetime.waiter import ended


def track_launches(loaded: LoadedExecutable, program: Program) -> LoadedExecutable:
    """Returns an executable whose launches are awaited here, if the program calls Python."""
    functions = [*program.callbacks.values(), *handlers_in(loaded.client, program)]
    return _TrackedExecutable(loaded, program, functions) if functions else loaded


def refuse_to_save(loaded: LoadedExecutable | None) -> None:
    """Raises `Unimplemented` for a program that calls functions of this process."""
    if isinstance(loaded, _TrackedExecutable) and loaded.program.callbacks:
        raise refuse_callbacks(loaded.program, "Python functions cannot be saved with a program")


class _TrackedExecutable(WrappedExecutable):
    """A loaded executable whose launches are ordered and remembered."""

    __slots__ = (
        "_devices", "_functions", "_last", "_launch", "_launches", "_lock",
        "_ordered", "_shared", "program",
    )  # fmt: skip

    def __init__(
        self, loaded: LoadedExecutable, program: Program, functions: Sequence[object]
    ) -> None:
        super().__init__(loaded)
        self.program = program
        self._functions = functions
        self._devices = loaded.addressable_devices
        self._launches = client_launches(loaded.client)
        self._ordered = any(getattr(x, "ordered", False) for x in program.callbacks.values())
        self._shared = [x for x in program.callbacks.values() if isinstance(x, SharedCallback)]
        self._lock = threading.Lock()
        self._last: Callable[[], None] | None = None
        self._launch = self._launch_after_last if self._shared else loaded.execute_with_wait
        watched = functions_to_watch(loaded, program)
        if watched:
            executable = loaded.executable
            parts = executable.num_replicas * executable.num_partitions
            self._launch = WatchedLaunches(
                self._launch, self._remember, watched, parts, program.name
            ).launch

    def execute(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> Sequence[Shards]:
        return self.execute_with_wait(arguments, options)[0]

    def execute_with_wait(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> tuple[Sequence[Shards], Callable[[], None]]:
        devices = self._devices
        if self._ordered:
            await_ordered(devices)
        launches = self._launches
        launch = CallingLaunch(launches, self._functions, devices, self.program, self._ordered)
        with launch.making:
            return self._make(launch, arguments, options)

    def _make(
        self, launch: CallingLaunch, arguments: Sequence[Shards], options: ExecuteOptions | None
    ) -> tuple[Sequence[Shards], Callable[[], None]]:
        launches = self._launches
        try:
            launches.begin(launch)
            results, wait = self._launch(arguments, options)
            if wait is ended:
                launches.end(launch)
            else:
                launch.wait = wait
                remember_launch(launch)
        except BaseException as error:
            if launch.wait is None or launch.wait is ended:
                launches.end(launch)
            else:  # an interrupt: it has been made, and needs its program until it has ended
                remember_launch(launch)
            if isinstance(error, PjrtError):
                forget_failures()
            raise
        return results, launch.finish

    def _remember(self, wait: Callable[[], object]) -> None:
        """Keeps a launch that nobody waits for any more, until it has ended."""
        launch = CallingLaunch(self._launches, self._functions, self._devices, self.program)
        with launch.making:
            self._launches.calling.append(launch)
            launch.wait = wait
            remember_launch(launch)

    def _launch_after_last(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None
    ) -> tuple[Sequence[Shards], Callable[[], None]]:
        """Launches when the last launch has ended: the devices' calls of each are counted."""
        with self._lock:
            if self._last is not None:
                self._last()
            for callback in self._shared:
                callback.begin()
            results, self._last = self._loaded.execute_with_wait(arguments, options)
            return results, self._last
