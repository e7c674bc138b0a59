"""The order and the end of side effects: launches of programs that call Python functions.

Within a program, tokens keep the order of calls that are ordered (`plugrt.stablehlo.callbacks`).
From one launch to the next a thread waits: before it launches an ordered program it awaits its last
ones on the same devices. So a launch that failed leaves nothing behind that the next could take
for its token, which JAX hands from launch to launch.

A thread waits for each launch, and releases the program with its functions when that has ended. At
exit the interpreter waits for that thread (`plugrt.waiter`): afterwards no callback could run. It
does so before the clients are destroyed, since plugrt was imported before this module.

A program whose devices each call Python is awaited in its call (`WatchedLaunches`).
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from plugrt.argument_errors import with_argument_errors
from plugrt.callback_exits import raise_exit
from plugrt.errors import ArgumentError, PjrtError, Unimplemented
from plugrt.execution.watched_launches import WatchedLaunches, functions_to_watch
from plugrt.execution.wrapped_executable import WrappedExecutable
from plugrt.host_callbacks import callback_depth, forget_failures, take_failure
from plugrt.interface import (
    Client,
    CompileOptions,
    Device,
    ExecuteOptions,
    LoadedExecutable,
    Program,
    Shards,
)
from plugrt.launch_watch import WatchedFunction
from plugrt.plugins import backends
from plugrt.shared_callbacks import SharedCallback
from plugrt.waiter import ProcessWaiter

_MOST = 256
"""Launches that may be under way; the oldest is awaited before one more."""


@dataclass(frozen=True, slots=True, eq=False)
class _Launched:
    number: int
    wait: Callable[[], object]
    thread: int
    devices: Sequence[Device]
    ordered: bool
    program: Program
    """Kept until the launch has ended: it has the functions that are called."""


@dataclass(frozen=True, slots=True, eq=False)
class _End:
    """The end of a launch, which a thread waits for; it does not keep the program."""

    number: int
    wait: Callable[[], object]

    def is_ready(self) -> bool:
        return False  # `LoadedExecutable.execute_with_wait` gives nothing to ask

    def finish(self) -> None:
        self.wait()
        _forget(self.number)


_in_flight: dict[int, _Launched] = {}
"""By number, the oldest first: each is forgotten as soon as a thread sees that it has ended."""
_lock = threading.RLock()
"""Reentrant: a program that is forgotten may end objects of users, whose ends may launch others."""
_numbers = itertools.count()
_ends = ProcessWaiter("plugrt-launches")


@with_argument_errors
def effects_barrier() -> None:
    """Waits until all that was launched has had its side effects.

    Raises the error of a callback with an effect (`io_callback`, `debug.callback`) that failed
    since the last barrier, of several the oldest; `SystemExit` and the like as they were. In a
    callback it waits for what that callback launched. As ``jax.effects_barrier``, which waits for
    launches of the calling thread alone.

    >>> seen = []
    >>> f = plugrt.jit(lambda x: plugrt.debug.callback(lambda v: seen.append(int(v)), x))
    >>> f(np.int32(3))
    >>> plugrt.effects_barrier()
    >>> seen
    [3]
    """
    _await(_of_this_thread() if callback_depth() else _of_all_threads())
    failure = take_failure()
    if failure is not None:
        raise_exit(failure)
        raise failure


def await_ordered(devices: Iterable[Device]) -> None:
    """Waits for the ordered launches that this thread has made on any of the devices."""
    wanted = set(devices)
    _await([x for x in _of_this_thread() if x.ordered and not wanted.isdisjoint(x.devices)])


def track_launches(loaded: LoadedExecutable, program: Program) -> LoadedExecutable:
    """Returns an executable whose launches are awaited here, if the program calls Python."""
    watched = functions_to_watch(loaded, program)
    if not program.callbacks and not watched:
        return loaded
    return _TrackedExecutable(loaded, program, watched)


def require_host_callbacks(client: Client, program: Program, options: CompileOptions) -> None:
    """Raises `Unimplemented` if the program calls Python and the backend cannot.

    Raises `ArgumentError` for ordered calls of a program that is divided over devices.
    """
    if program.callbacks and not client.capabilities.host_callbacks:
        raise refuse_callbacks(
            program,
            f"{client.backend_name} does not declare that a program can call Python functions "
            "while it runs (capability host_callbacks)",
        )

    if options.num_partitions > 1 and options.device_assignment is not None:
        by_id = {device.id: device for device in client.devices()}
        devices = [by_id[i] for i in options.device_assignment.flat]
        for call in program.callbacks.values():
            if getattr(call, "ordered", False):
                refuse_order(str(getattr(call, "title", call)), devices)


def refuse_order(title: str, devices: Sequence[Device]) -> NoReturn:
    """Raises `ArgumentError` for an ordered call by a program that is divided over devices."""
    raise ArgumentError(
        f"{title} is ordered, and its program is divided over {devices}, "
        "which run at the same time: an order of their calls is not supported. Take "
        "ordered=False, or one device"
    )


def refuse_callbacks(program: Program, reason: str) -> Unimplemented:
    """Returns the error for a program that calls Python where that cannot be."""
    calls = "; ".join(str(getattr(x, "title", x)) for x in program.callbacks.values())
    return Unimplemented(f"{program.name!r} calls {calls}; {reason}")


def refuse_to_save(loaded: LoadedExecutable | None) -> None:
    """Raises `Unimplemented` for a program that calls functions of this process."""
    if isinstance(loaded, _TrackedExecutable) and loaded.program.callbacks:
        raise refuse_callbacks(loaded.program, "Python functions cannot be saved with a program")


class _TrackedExecutable(WrappedExecutable):
    """A loaded executable whose launches are ordered and remembered."""

    __slots__ = ("_last", "_launch", "_lock", "_ordered", "_shared", "program")

    def __init__(
        self, loaded: LoadedExecutable, program: Program, watched: Sequence[WatchedFunction]
    ) -> None:
        super().__init__(loaded)
        self.program = program
        self._ordered = any(getattr(x, "ordered", False) for x in program.callbacks.values())
        self._shared = [x for x in program.callbacks.values() if isinstance(x, SharedCallback)]
        self._lock = threading.Lock()
        self._last: Callable[[], None] | None = None
        self._launch = self._launch_after_last if self._shared else loaded.execute_with_wait
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
        devices = self._loaded.addressable_devices
        if self._ordered:
            await_ordered(devices)
        try:
            results, wait = self._launch(arguments, options)
        except PjrtError:
            forget_failures()
            raise
        self._remember(wait)
        return results, wait

    def _remember(self, wait: Callable[[], object]) -> None:
        _remember(wait, self._loaded.addressable_devices, self._ordered, self.program)

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


def _remember(
    wait: Callable[[], object], devices: Sequence[Device], ordered: bool, program: Program
) -> None:
    number, thread = next(_numbers), threading.get_ident()
    with _lock:
        _in_flight[number] = _Launched(number, wait, thread, devices, ordered, program)
        oldest = next(iter(_in_flight.values())) if len(_in_flight) > _MOST else None
    _ends.add(_End(number, wait))
    # Not in a callback: the oldest launch may be the one that waits for this callback.
    if oldest is not None and not callback_depth():
        _await([oldest])


def _forget(number: int) -> None:
    """Releases a launch, all of it before the lock: whoever finds it gone finds nothing of it."""
    with _lock:
        _in_flight.pop(number, None)


def _of_this_thread() -> list[_Launched]:
    thread = threading.get_ident()
    with _lock:
        return [x for x in _in_flight.values() if x.thread == thread]


def _of_all_threads() -> list[_Launched]:
    with _lock:
        return [*_in_flight.values()]


def _await(launches: Iterable[_Launched]) -> None:
    for launched in launches:
        launched.wait()  # before it is forgotten: an interrupt may end the waiting
        _forget(launched.number)


def _await_all() -> None:
    """Awaits what is under way: a client that is closed can call nobody back."""
    _await(_of_all_threads())


def _forget_all() -> None:
    """Forgets launches, which are the parent's, and a lock that no thread of a child may hold."""
    global _lock
    _lock = threading.RLock()
    _in_flight.clear()


backends.on_clear(_await_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
