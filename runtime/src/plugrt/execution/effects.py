"""The order and the end of side effects: launches of programs that call Python functions.

Within a program, tokens keep the order of calls that are ordered (`plugrt.stablehlo.callbacks`).
From one launch to the next a thread waits: before it launches an ordered program it awaits its last
ones on the same devices. So a launch that failed leaves nothing behind that the next could take
for its token, which JAX hands from launch to launch.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from plugrt.argument_errors import with_argument_errors
from plugrt.errors import PjrtError, Unimplemented
from plugrt.execution.wrapped_executable import WrappedExecutable
from plugrt.host_callbacks import callback_depth, forget_failures, take_failure
from plugrt.interface import (
    Client,
    Device,
    ExecuteOptions,
    LoadedExecutable,
    Program,
    Shards,
)
from plugrt.plugins import backends

_MOST = 256
"""Launches that are remembered; the oldest is awaited before one more."""


@dataclass(frozen=True, slots=True, eq=False)
class _Launched:
    wait: Callable[[], None]
    thread: int
    devices: Sequence[Device]
    ordered: bool
    program: Program
    """Kept until the launch has ended: it has the functions that are called."""


_in_flight: deque[_Launched] = deque()
_lock = threading.Lock()


@with_argument_errors
def effects_barrier() -> None:
    """Waits until all that was launched has had its side effects.

    Raises the error of a callback with an effect (`io_callback`, `debug.callback`) that failed
    since the last barrier, of several the oldest. In a callback it waits for what that callback
    launched. As ``jax.effects_barrier``, which waits for launches of the calling thread alone.

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
        raise failure


def await_ordered(devices: Iterable[Device]) -> None:
    """Waits for the ordered launches that this thread has made on any of the devices."""
    wanted = set(devices)
    _await([x for x in _of_this_thread() if x.ordered and not wanted.isdisjoint(x.devices)])


def track_launches(loaded: LoadedExecutable, program: Program) -> LoadedExecutable:
    """Returns an executable whose launches are awaited here, if the program calls Python."""
    return _TrackedExecutable(loaded, program) if program.callbacks else loaded


def require_host_callbacks(client: Client, program: Program) -> None:
    """Raises `Unimplemented` if the program calls Python and the backend cannot."""
    if program.callbacks and not client.capabilities.host_callbacks:
        raise refuse_callbacks(
            program,
            f"{client.backend_name} does not declare that a program can call Python functions "
            "while it runs (capability host_callbacks)",
        )


def refuse_callbacks(program: Program, reason: str) -> Unimplemented:
    """Returns the error for a program that calls Python where that cannot be."""
    calls = "; ".join(str(getattr(x, "title", x)) for x in program.callbacks.values())
    return Unimplemented(f"{program.name!r} calls {calls}; {reason}")


def refuse_to_save(loaded: LoadedExecutable | None) -> None:
    """Raises `Unimplemented` for a program that calls functions of this process."""
    if isinstance(loaded, _TrackedExecutable):
        raise refuse_callbacks(loaded.program, "Python functions cannot be saved with a program")


class _TrackedExecutable(WrappedExecutable):
    """A loaded executable whose launches are ordered and remembered."""

    __slots__ = ("_ordered", "program")

    def __init__(self, loaded: LoadedExecutable, program: Program) -> None:
        super().__init__(loaded)
        self.program = program
        self._ordered = any(getattr(x, "ordered", False) for x in program.callbacks.values())

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
            results, wait = self._loaded.execute_with_wait(arguments, options)
        except PjrtError:
            forget_failures()
            raise
        thread = threading.get_ident()
        _remember(_Launched(wait, thread, devices, self._ordered, self.program))
        return results, wait


def _remember(launched: _Launched) -> None:
    with _lock:
        _in_flight.append(launched)
        oldest = _in_flight[0] if len(_in_flight) > _MOST else None
    # Not in a callback: the oldest launch may be the one that waits for this callback.
    if oldest is not None and not callback_depth():
        _await([oldest])


def _of_this_thread() -> list[_Launched]:
    thread = threading.get_ident()
    with _lock:
        return [x for x in _in_flight if x.thread == thread]


def _of_all_threads() -> list[_Launched]:
    with _lock:
        return [*_in_flight]


def _await(launches: Iterable[_Launched]) -> None:
    for launched in launches:
        launched.wait()  # before it is forgotten: an interrupt may end the waiting
        with _lock:
            if launched in _in_flight:
                _in_flight.remove(launched)


@atexit.register
def _await_all() -> None:
    """Awaits what is under way when the interpreter ends: afterwards no callback could run.

    This module is imported after plugrt, whose handler destroys the clients after this one.
    """
    _await(_of_all_threads())


def _forget_all() -> None:
    """Forgets launches, which are the parent's, and a lock that no thread of a child may hold."""
    global _lock
    _lock = threading.Lock()
    _in_flight.clear()


backends.on_clear(_await_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
