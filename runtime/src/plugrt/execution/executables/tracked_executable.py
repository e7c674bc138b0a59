"""`track_launches`: an executable whose launches are ordered and awaited, if it calls Python.

The call of a program whose devices each call Python waits for its end (`WatchedLaunches`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from plugrt.callbacks.host_callbacks import (
    NumberedCallback,
    calls_under_way,
    forget_failures,
    logger,
)
from plugrt.callbacks.launch_watch import Watch, WatchedFunction
from plugrt.callbacks.shared_callbacks import SharedCallback
from plugrt.errors import FailedPrecondition, PjrtError
from plugrt.execution.executables.bounded_executable import WrappedExecutable
from plugrt.execution.executables.calling_launch import CallingLaunch, refuse_callbacks
from plugrt.execution.executables.client_launches import client_launches
from plugrt.execution.executables.custom_call_targets import handlers_in
from plugrt.execution.executables.effects import await_ordered, remember_launch
from plugrt.interface import (
    Client,
    CompileOptions,
    ExecuteOptions,
    LoadedExecutable,
    Program,
    Shards,
)
from plugrt.lifetime.thread_work import ThreadWork
from plugrt.lifetime.waiter import ended


def track_launches(
    loaded: LoadedExecutable, program: Program, options: CompileOptions
) -> LoadedExecutable:
    """Returns an executable that tracks its launches, if the program calls Python."""
    functions = [*program.callbacks.values(), *handlers_in(loaded.client, program)]
    if not functions:
        return loaded
    return _TrackedExecutable(loaded, program, functions, _processes(loaded.client, options))


def _processes(client: Client, options: CompileOptions) -> tuple[int, ...]:
    """Returns the processes of a program's devices, in the order of the devices."""
    if options.device_assignment is None:
        return ()
    by_id = {device.id: device.process_index for device in client.devices()}
    return tuple(dict.fromkeys(by_id[i] for i in options.device_assignment.flat))


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
        self,
        loaded: LoadedExecutable,
        program: Program,
        functions: Sequence[object],
        processes: Sequence[int] = (),
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
                self._launch, self._remember, watched, parts, program.name, processes
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
            await_ordered()
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
        except BaseException as error:  # also an interrupt: was the launch made?
            if launch.wait is None or launch.wait is ended:
                launches.end(launch)
            else:  # it was made, and needs its program until its end
                remember_launch(launch)
            if isinstance(error, PjrtError):
                forget_failures()
            raise
        return results, launch.finish

    def _remember(self, wait: Callable[[], object]) -> None:
        """Keeps an interrupted caller's launch alive until it has ended."""
        launch = CallingLaunch(self._launches, self._functions, self._devices, self.program)
        with launch.making:
            self._launches.calling.append(launch)
            launch.wait = wait
            remember_launch(launch)

    def _launch_after_last(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None
    ) -> tuple[Sequence[Shards], Callable[[], None]]:
        """Launches after the last launch has ended, since shared calls are counted per launch."""
        with self._lock:
            if self._last is not None:
                self._last()
            for callback in self._shared:
                callback.begin()
            results, self._last = self._loaded.execute_with_wait(arguments, options)
            return results, self._last


Launched = tuple[Sequence[Shards], Callable[[], None]]
LaunchWithWait = Callable[[Sequence[Shards], ExecuteOptions | None], Launched]

LEFT_AFTER = 20.0
"""Seconds after a failure that a call waits for the end of the other parts."""
_OWN_LAUNCH = 10.0
"""Seconds that a callback waits for a program's launches, one of which may wait for it."""


class WatchedLaunches:
    """The launches of one program; each raises the failure of a function that it calls.

    Launches whose devices exchange no data are watched, too: the failed part's results would be
    errors, and a later program would wait for them in its collectives.
    """

    __slots__ = (
        "_functions", "_launch", "_left_after", "_name", "_parts", "_processes", "_remember",
    )  # fmt: skip

    def __init__(
        self,
        launch: LaunchWithWait,
        remember: Callable[[Callable[[], object]], object],
        functions: Sequence[WatchedFunction],
        parts: int,
        name: str,
        processes: Sequence[int] = (),
        left_after: float = LEFT_AFTER,
    ) -> None:
        self._launch = launch
        self._left_after = left_after
        self._remember = remember
        self._functions = functions
        self._parts = parts
        self._name = name
        self._processes = processes

    def launch(self, arguments: Sequence[Shards], options: ExecuteOptions | None) -> Launched:
        """Launches and waits; if a Python function failed, drops the results and raises its error.

        Launches of programs that call the same function run one after the other. If the parts do
        not end after a failure, the failure is raised without waiting any longer. If an interrupt
        ends the wait, the launch is passed to ``remember``, which waits for its end.
        """
        watch, ending = self._make_watch(), ExitStack()
        with ExitStack() as on_error:
            on_error.push(ending)
            for function in self._functions:
                if self._take_turn(function):
                    ending.callback(_release, function)
                    function.watch = watch
            on_error.pop_all()
        launched = self._run(lambda: self._launch(arguments, options), watch, ending.close)
        watch.look()
        if watch.failure is not None:
            raise watch.failure
        return launched()

    def _make_watch(self) -> Watch:
        if len(self._processes) > 1:
            # Imported here: a program on devices of one process does not need it.
            from plugrt.execution.executables.agreements import ProcessesWatch

            return ProcessesWatch(self._parts, self._name, self._processes)
        return Watch(self._parts)

    def _take_turn(self, function: WatchedFunction) -> bool:
        """Waits until no other launch uses a function; False in a callback that waits too long."""
        waited = 0.0
        while not function.turn.acquire(timeout=1):
            waited += 1
            watch = function.watch
            if watch is not None and watch.seconds_since_failure() > self._left_after:
                raise FailedPrecondition(
                    f"{self._name!r} cannot be launched: a launch before it has not ended since a "
                    f"function that both call has failed: {watch.failure}"
                )
            if waited > _OWN_LAUNCH and calls_under_way():
                return False
        return True

    def _run(
        self, launch: Callable[[], Launched], watch: Watch, finish: Callable[[], None]
    ) -> Callable[[], Launched]:
        """Launches and waits on another thread; returns a function for the results, or raises.

        Ctrl-C raises at once: Python checks for it only on the main thread, outside of libraries.
        """

        def work() -> Launched:
            try:
                made = launch()
                made[1]()
            finally:
                finish()
            return made

        aside = ThreadWork(work)
        try:
            if not aside.start():
                aside.run()
            if not _wait_for(aside, watch, self._left_after):
                logger.error(
                    "%r has not ended since a function that it calls has failed: it goes on with "
                    "zeros in the place of what that returns, and its devices are not free",
                    self._name,
                )
        except BaseException:  # an interrupt
            if aside.give_up():
                finish()
            else:  # the devices continue, and call the functions
                seconds = self._left_after  # not `self`, which has the program
                self._remember(lambda: _wait_for(aside, watch, seconds))
            raise
        return aside.result


def _wait_for(launched: ThreadWork[Launched], watch: Watch, left_after: float) -> bool:
    """Waits for the end of a launch; returns False ``left_after`` seconds after a failure."""
    while not launched.wait(timeout=1):
        watch.look()
        if watch.seconds_since_failure() > left_after:
            return False
    return True


def _release(function: WatchedFunction) -> None:
    function.watch = None
    function.turn.release()


def functions_to_watch(loaded: LoadedExecutable, program: Program) -> list[WatchedFunction]:
    """Returns the Python functions of a program on several devices whose failures are watched.

    With several processes these include functions that the first process calls for all: the others
    wait for its results.
    """
    executable = loaded.executable
    if executable.num_replicas * executable.num_partitions == 1:
        return []
    callbacks = [x for x in program.callbacks.values() if isinstance(x, NumberedCallback)]
    callbacks = sorted((x for x in callbacks if x.blank is not None), key=lambda x: x.number)
    return [*callbacks, *handlers_in(loaded.client, program)]
