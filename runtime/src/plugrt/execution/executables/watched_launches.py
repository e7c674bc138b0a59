"""Launches on several devices that are awaited, since a Python function may fail in one part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from plugrt.callbacks.host_callbacks import NumberedCallback, calls_under_way, logger
from plugrt.callbacks.launch_watch import Watch, WatchedFunction
from plugrt.errors import FailedPrecondition
from plugrt.execution.executables.custom_call_targets import handlers_in
from plugrt.interface import ExecuteOptions, LoadedExecutable, Program, Shards
from plugrt.lifetime.thread_work import ThreadWork

Launched = tuple[Sequence[Shards], Callable[[], None]]
LaunchWithWait = Callable[[Sequence[Shards], ExecuteOptions | None], Launched]

LEFT_AFTER = 20.0
"""Seconds after a failure for which a call waits for the parts to come to their end."""
_OWN_LAUNCH = 10.0
"""Seconds for which a callback waits for launches of a program: one may be waiting for it."""


class WatchedLaunches:
    """The launches of one program, each of which raises the failure of a function it calls.

    Also those whose devices exchange nothing: the part that failed would have results that are
    errors, and the next program waits for them in its collectives.
    """

    __slots__ = ("_functions", "_launch", "_name", "_parts", "_remember")

    def __init__(
        self,
        launch: LaunchWithWait,
        remember: Callable[[Callable[[], object]], object],
        functions: Sequence[WatchedFunction],
        parts: int,
        name: str,
    ) -> None:
        self._launch = launch
        self._remember = remember
        self._functions = functions
        self._parts = parts
        self._name = name

    def launch(self, arguments: Sequence[Shards], options: ExecuteOptions | None) -> Launched:
        """Launches and waits; raises the failure of a function. The results are dropped then.

        Two launches of programs that have a function in common are made one after the other. If the
        parts do not end after a failure, it is raised and the program left to itself. A launch that
        an interrupt no longer waits for is handed to ``remember``, by what waits for its end.
        """
        watch, ending = Watch(self._parts), ExitStack()
        with ExitStack() as on_error:
            on_error.push(ending)
            for function in self._functions:
                if self._take_turn(function):
                    ending.callback(_release, function)
                    function.watch = watch
            on_error.pop_all()
        launched = self._run(lambda: self._launch(arguments, options), watch, ending.close)
        if watch.failure is not None:
            raise watch.failure
        return launched()

    def _take_turn(self, function: WatchedFunction) -> bool:
        """Waits until no other launch has a function; False in a callback that waits too long."""
        waited = 0.0
        while not function.turn.acquire(timeout=1):
            waited += 1
            watch = function.watch
            if watch is not None and watch.seconds_since_failure() > LEFT_AFTER:
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
        """Launches and waits, on a thread; returns what gives the results, or raises.

        Ctrl-C raises at once: Python looks for it on the main thread, and not within libraries.
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
            if not _wait_for(aside, watch):
                logger.error(
                    "%r has not ended since a function that it calls has failed: it goes on with "
                    "zeros in the place of what that returns, and its devices are not free",
                    self._name,
                )
        except BaseException:  # an interrupt
            if aside.give_up():
                finish()
            else:  # the devices go on, and so do their callbacks
                self._remember(lambda: _wait_for(aside, watch))
            raise
        return aside.result


def _wait_for(launched: ThreadWork[Launched], watch: Watch) -> bool:
    """Waits for the end of a launch; False if it has not come for long after a failure."""
    while not launched.wait(timeout=1):
        if watch.seconds_since_failure() > LEFT_AFTER:
            return False
    return True


def _release(function: WatchedFunction) -> None:
    function.watch = None
    function.turn.release()


def functions_to_watch(loaded: LoadedExecutable, program: Program) -> list[WatchedFunction]:
    """Returns the Python functions that each part of a program calls by itself, one by one."""
    executable = loaded.executable
    parts = executable.num_replicas * executable.num_partitions
    # Devices of other processes would go on with the zeros that are returned for a failed call.
    if parts == 1 or parts != len(loaded.addressable_devices):
        return []
    callbacks = [x for x in program.callbacks.values() if isinstance(x, NumberedCallback)]
    callbacks = sorted((x for x in callbacks if x.blank is not None), key=lambda x: x.number)
    return [*callbacks, *handlers_in(loaded.client, program)]
