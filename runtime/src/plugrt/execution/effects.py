"""The order and the end of side effects: launches of programs that call Python functions.

Within a program, tokens keep the order of calls that are ordered (`plugrt.stablehlo.callbacks`).
From one launch to the next a thread waits: before it launches an ordered program it awaits its last
ones on the same devices. So a launch that failed leaves nothing behind that the next could take
for its token, which JAX hands from launch to launch.

A thread waits for each launch, and releases the program with its functions when that has ended. At
exit the interpreter waits for that thread (`plugrt.waiter`): afterwards no callback could run. It
does so before the clients are destroyed, since plugrt was imported before this module.

`plugrt.execution.tracked_executable` makes the launches that are awaited here.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from plugrt.argument_errors import with_argument_errors
from plugrt.callback_exits import raise_exit
from plugrt.host_callbacks import calls_under_way, take_failure
from plugrt.interface import (
    Device,
    Program,
)
from plugrt.plugins import backends
from plugrt.waiter import ProcessWaiter


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


# Process-wide: `effects_barrier` waits for the launches of all clients and threads.
_in_flight: dict[int, _Launched] = {}
"""By number, the oldest first: each is forgotten as soon as a thread sees that it has ended."""
# Process-wide: guards `_in_flight`.
_lock = threading.RLock()
"""Reentrant: a program that is forgotten may end objects of users, whose ends may launch others."""
# Process-wide: numbers `_in_flight`, in the order of launches.
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
    _await(_of_this_thread() if calls_under_way() else _of_all_threads())
    failure = take_failure()
    if failure is not None:
        raise_exit(failure)
        raise failure


def await_ordered(devices: Iterable[Device]) -> None:
    """Waits for the ordered launches that this thread has made on any of the devices."""
    wanted = set(devices)
    _await([x for x in _of_this_thread() if x.ordered and not wanted.isdisjoint(x.devices)])


def remember_launch(
    wait: Callable[[], object], devices: Sequence[Device], ordered: bool, program: Program
) -> Callable[[], None]:
    """Keeps a launch of this thread, and its program, until a thread has seen its end.

    Returns what waits for that.
    """
    number, thread = next(_numbers), threading.get_ident()
    with _lock:
        _in_flight[number] = _Launched(number, wait, thread, devices, ordered, program)
    end = _End(number, wait)
    _ends.add(end)
    return end.finish


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
