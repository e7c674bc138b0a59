"""The launches of a client that others may have to wait for, and how many of them are under way.

Two kinds hold threads of a backend and places in its queues until something else has happened:
launches whose devices exchange data, and launches of programs that call Python functions, which may
launch programs themselves and wait for them. XLA's CPU client has 32 places for each device. When
launches that wait for a callback fill them, the launch that the callback makes finds none.

So the oldest is awaited before there is one more than the client's bound. Launches that a callback
makes are not counted: the one that waits for the callback has its place until they have ended.
Those that could not end before it are refused.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from plugrt.compiled_core import core, new_lock
from plugrt.errors import FailedPrecondition
from plugrt.host_callbacks import calls_under_way
from plugrt.interface import Client, Device, LoadedExecutable, Shards
from plugrt.plugins import backends

_MOST = 256
"""Launches that call Python, where the client states no bound: each is kept until it has ended."""

_SEEN_WITHIN = 5.0
"""Seconds until the end of a launch is noticed, on a machine with much to do."""

Launched = tuple[Sequence[Shards], Callable[[], None]]
"""The results of a launch, and what waits for its end."""


class CallingLaunch:
    """A launch of a program that calls Python functions, from before it is made to its end.

    Its thread makes it ``with launch.making:``. An interrupt cannot leave a lock's ``with`` half
    done, so that a launch that was given up is known by it.
    """

    __slots__ = ("_wait", "devices", "entry", "functions", "has_ended", "making", "outer", "thread")

    def __init__(self, functions: Sequence[object], devices: Sequence[Device]) -> None:
        self.functions = functions
        self.devices = devices
        self.thread: int | None = threading.get_ident()
        """The thread that is making it: its functions may be called there, within the launch."""
        self.outer: tuple[CallingLaunch, ...] = ()
        """The launches whose functions make this one."""
        self.entry = (self.wait, True)
        """Its entry in the queue."""
        self.has_ended = False
        self._wait: Callable[[], object] | None = None
        self.making = threading.Lock()

    def set_made(self, wait: Callable[[], object] | None) -> None:
        """States that it is made; ``wait`` waits for its end, and is None where it has ended."""
        self.thread = None
        self._wait = None if self.has_ended else wait

    def is_under_way(self) -> bool:
        """Whether it has not ended, nor was given up."""
        return not self.has_ended and (self._wait is not None or self.making.locked())

    def set_ended(self) -> None:
        """States that it has ended, and drops what waits for that, and so the program."""
        self.has_ended, self._wait = True, None
        self.entry = (_nothing, True)

    def wait(self) -> None:
        """Waits for its end, also while another thread is making it."""
        with self.making:
            wait = self._wait
        if wait is not None:
            wait()


class BlockingLaunches:
    """A queue of one client's launches, from the oldest in flight that blocks others on.

    At most ``bound`` launches are in flight, over all programs and threads: the oldest is awaited
    before another is launched. One on several devices is enqueued on all of them before the next.
    Launches that block none count while one that does precedes them: they are behind it in the
    devices' queues. ``calling`` lists the launches that call Python functions.
    """

    __slots__ = ("_is_bounded", "_launches", "_lock", "_queues_nested", "bound", "calling")

    def __init__(self, bound: int | None, *, queues_nested: bool = False) -> None:
        self._is_bounded = bound is not None
        self.bound = bound or _MOST
        self.calling: list[CallingLaunch] = []
        self._queues_nested = queues_nested
        self._lock = new_lock()  # not plain: a finaliser or a signal handler may launch meanwhile
        self._launches: deque[tuple[Callable[[], object], bool]] = deque()

    def __bool__(self) -> bool:
        """Whether a launch that blocks others may be in flight."""
        return bool(self._launches or self.calling)

    def launch(
        self,
        execute: Callable[..., Launched],
        collective: bool,
        *arguments: Any,
        devices: Sequence[Device] = (),
    ) -> Launched:
        """Returns what an ``execute_with_wait`` returns, called once there is a free slot."""
        nested = self.check_nested(devices)
        while True:
            with self._lock:
                if nested or len(self._launches) < self.bound:
                    launched = execute(*arguments)
                    if collective or self._launches:
                        self._launches.append((launched[1], collective))
                    return launched
                oldest = self._launches[0]
            self._await(oldest)

    def launch_on_one(
        self, execute: Callable[[Any], Any], arguments: Any, devices: Sequence[Device]
    ) -> Any:
        """Launches a program on one device that blocks no other, once there is a free slot.

        It ends by itself when those before it have ended, so that it is not waited for.
        """
        if not self.check_nested(devices):
            self._take_place((_nothing, False))
        return execute(arguments)

    def begin(self, launch: CallingLaunch) -> None:
        """Waits for a free slot and gives it to a launch that calls Python functions, until `end`.

        The caller makes the launch (`CallingLaunch.making`).
        Raises `FailedPrecondition` for one that could not end before the launch whose function
        makes it.
        """
        if self.check_nested(launch.devices):
            launch.outer = (*self._outer_launches(),)
            self.calling.append(launch)
        else:
            self._take_place(launch.entry, launch)

    def end(self, launch: CallingLaunch) -> None:
        """Gives back the slot of a launch; a second time it does nothing."""
        with self._lock:
            if launch.has_ended:
                return
            entry, launches = launch.entry, self._launches
            launch.set_ended()
            self._forget_given_up()
            if entry in launches:  # not where a callback made it, or it was awaited
                launches.remove(entry)
                self._forget_unless_blocking()

    def check_nested(self, devices: Sequence[Device]) -> bool:
        """Returns whether a Python function that a program calls is making a launch.

        Raises `FailedPrecondition` where it would wait for the launch that calls the function.
        """
        calls = calls_under_way()
        if not calls:
            return False
        title = getattr(calls[-1], "title", repr(calls[-1]))
        for outer in self._outer_launches():
            if self._is_bounded and len(devices) > 1 and len(outer.devices) > 1:
                raise FailedPrecondition(
                    f"{title} launches a program on {len(devices)} devices while the program that "
                    f"calls it runs on {len(outer.devices)}: this backend begins the second when "
                    "the first has ended, which waits for the function. Fix: launch on one device "
                    "in the function, or on another backend; or launch after the program"
                )
            within = outer.thread == threading.get_ident()
            same = len(outer.devices) == 1 and [*devices] == [*outer.devices]
            if self._queues_nested and same and not within:
                raise FailedPrecondition(
                    f"{title} launches a program on the device that calls it: this library begins "
                    "it when the program that calls has ended, which waits for the function. Fix: "
                    "compute with NumPy in the function, or on another backend (such as the "
                    'backend "cpu", which runs such launches); or launch after the program'
                )
        if self._is_bounded and not self._has_room_for_nested():
            raise FailedPrecondition(
                f"{title} launches a program while {len(self.calling)} launches wait for Python "
                "functions: with more of them the backend's queue is full, and all wait for ever. "
                "Fix: nest fewer programs in functions that programs call"
            )
        return True

    def _has_room_for_nested(self) -> bool:
        """Whether a device's queue has a place left, beside those that the bound allows.

        That a nested launch has ended is seen on another thread, and so a little later.
        """
        deadline = 0.0
        while len(self.calling) >= 3 * self.bound:
            now = time.monotonic()
            deadline = deadline or now + _SEEN_WITHIN
            if now > deadline:
                return False
            time.sleep(0.001)
        return True

    def _outer_launches(self) -> Iterator[CallingLaunch]:
        """Gives the launches that may call the functions that this thread is in, and theirs."""
        calls, thread = calls_under_way(), threading.get_ident()
        found = [x for x in [*self.calling] if any(call in x.functions for call in calls)]
        # Several launches of a program may be in flight; within its own call it is known which.
        found = [x for x in found if x.thread == thread] or found
        seen: set[CallingLaunch] = set()
        while found:
            launch = found.pop()
            if launch not in seen:
                seen.add(launch)
                found += launch.outer
                yield launch

    def launcher(self, loaded: LoadedExecutable) -> Callable[[Sequence[Shards]], Sequence[Shards]]:
        """Returns `launch` for collectives of one executable: one function, the path of each call.

        After a launch on several devices the processor has forgotten what ran before, so that each
        function on the way costs some microseconds instead of a tenth of one.
        """
        lock, launches, bound, calling, execute = (
            self._lock, self._launches, self.bound, self.calling, loaded.execute_with_wait
        )  # fmt: skip

        def launch(arguments: Sequence[Shards]) -> Sequence[Shards]:
            with lock:
                if len(launches) < bound and not calling:
                    results, wait = execute(arguments)
                    launches.append((wait, True))
                    return results
            devices = loaded.addressable_devices
            return self.launch(execute, True, arguments, devices=devices)[0]

        return launch

    def compiled_launcher(self, launcher: Any, collective: bool, parts: int) -> Any:
        """Returns what launches as `launch` does, in the compiled core, by a launcher of it.

        While launches that call Python functions are under way it leaves launches to Python.
        """
        return core.BoundedLauncher(
            launcher=launcher,
            queue=self._launches if parts > 1 else (),
            lock=self._lock,
            bound=self.bound,
            exchanges=collective,
            unless=(self.calling,),
        )

    def _take_place(
        self, waiting: tuple[Callable[[], object], bool], launch: CallingLaunch | None = None
    ) -> None:
        while True:
            with self._lock:
                self._forget_given_up()
                if len(self._launches) < self.bound:
                    if waiting[1] or self._launches:
                        self._launches.append(waiting)
                    if launch is not None:
                        self.calling.append(launch)
                    return
                oldest = self._launches[0]
            self._await(oldest)

    def _await(self, oldest: tuple[Callable[[], object], bool]) -> None:
        """Waits for the oldest launch, without the lock, which its callbacks may need."""
        oldest[0]()  # before it is removed: an interrupt may end the waiting
        with self._lock:
            if self._launches and self._launches[0] is oldest:
                self._launches.popleft()
                self._forget_unless_blocking()

    def _forget_given_up(self) -> None:
        self.calling[:] = [x for x in self.calling if x.is_under_way()]

    def _forget_unless_blocking(self) -> None:
        for _, blocking in self._launches:
            if blocking:
                return
        self._launches.clear()


def _nothing() -> None:
    """Waits for a launch that ends when those before it have ended."""


# Process-wide: clients of any plugin have a bound, and hold no state of the execution layer.
_of_clients: weakref.WeakKeyDictionary[Client, BlockingLaunches] = weakref.WeakKeyDictionary()
# Process-wide: it guards the table above.
_lock = threading.Lock()


def client_launches(client: Client) -> BlockingLaunches:
    """Returns the queue that all programs of a client share."""
    with _lock:
        found = _of_clients.get(client)
        if found is None:
            bound = client.capabilities.max_blocking_launches
            queues = getattr(client, "queues_nested_launches", False)
            found = _of_clients[client] = BlockingLaunches(bound, queues_nested=queues)
        return found


backends.on_clear(_of_clients.clear)
