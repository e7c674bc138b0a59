"""Orders and awaits side effects, that is, launches of programs that call Python functions.

Within a program, tokens order the ordered calls (`plugrt.stablehlo.callback_order`). Between
launches the thread waits: before it launches an ordered program it awaits its earlier ordered
launches, on all devices. JAX instead passes a token from launch to launch; here a failed launch
leaves no token for the next one.

Another thread waits for each launch, and releases the program with its functions when the launch
has ended. At exit the interpreter waits for that thread (`plugrt.lifetime.waiter`), because
afterwards no callback could run. It waits before the clients are destroyed, since plugrt was
imported before this module.

`plugrt.execution.executables.tracked_executable` makes the launches that are awaited here.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from plugrt.callbacks.host_callbacks import calls_under_way, take_failure
from plugrt.execution.executables.calling_launch import CallingLaunch
from plugrt.execution.executables.client_launches import calling_launches
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.lifetime.callback_exits import raise_exit
from plugrt.lifetime.waiter import ProcessWaiter

_MOST_THREADS = 64
"""Threads that wait for launches; more than a bounded client has launches, so each has one."""
_ends = ProcessWaiter("plugrt-launches", _MOST_THREADS)


@with_argument_errors
def effects_barrier() -> None:
    """Waits until all launches have had their side effects.

    Raises the oldest error since the last barrier of a callback with an effect (`io_callback`,
    `debug.callback`); `SystemExit` and the like are raised unchanged.
    In a callback it waits for the launches of that callback. As ``jax.effects_barrier``, which
    waits only for launches of the calling thread.

    >>> seen = []
    >>> f = plugrt.jit(lambda x: plugrt.debug.callback(lambda v: seen.append(int(v)), x))
    >>> f(np.int32(3))
    >>> plugrt.effects_barrier()
    >>> seen
    [3]
    """
    launches = calling_launches()
    _await(_find_own(launches) if calls_under_way() else launches)
    failure = take_failure()
    if failure is not None:
        raise_exit(failure)
        raise failure


def await_ordered() -> None:
    """Waits for the ordered launches of this thread, on all devices of all clients."""
    _await([x for x in _find_own(calling_launches()) if x.ordered])


def remember_launch(launch: CallingLaunch) -> None:
    """Makes a thread wait for a launch, and keeps launch and program alive until its end."""
    _ends.add(launch)
    launch.is_remembered = True  # an interrupt came first: the caller abandons it


def _find_own(launches: Iterable[CallingLaunch]) -> list[CallingLaunch]:
    thread = threading.get_ident()
    return [x for x in launches if x.thread == thread]


def _await(launches: Iterable[CallingLaunch]) -> None:
    for launch in launches:
        launch.finish()
