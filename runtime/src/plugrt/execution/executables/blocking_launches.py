"""Bounds the number of running launches of a client that may block others.

Two kinds occupy threads of a backend and slots in its queues until another event: launches whose
devices exchange data, and launches of programs that call Python functions, which may launch
programs themselves and wait for them. XLA's CPU client has 32 slots for each device. If launches
that wait for a callback fill them, there is no slot for the launch that the callback makes.

So at the client's bound the oldest launch is awaited before the next. Launches that a callback
makes are not counted: the launch that waits for the callback keeps its slot until they have ended.
Those that cannot end before it are refused. A callback may use another thread to launch, so no
launch waits longer than `calling_launch.PATIENCE` for one that calls Python, unless its arguments
depend on it. After that it is treated as a callback's launch.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from plugrt.callbacks.host_callbacks import calls_under_way
from plugrt.callbacks.shared_callbacks import SharedCallback
from plugrt.errors import FailedPrecondition, PjrtError
from plugrt.execution.executables import calling_launch
from plugrt.execution.executables.calling_launch import CallingLaunch
from plugrt.interface import Client, Device, LoadedExecutable, Shards
from plugrt.lifetime.waiter import ended
from plugrt.native.native_core import core, new_lock

_MOST = 256
"""The bound for launches that call Python, if the client states none."""

Launched = tuple[Sequence[Shards], Callable[[], None]]
"""The results of a launch, and a function that waits for its end."""


class BlockingLaunches:
    """A queue of one client's launches in flight; it begins with the oldest that blocks others.

    At most ``bound`` launches are in flight, over all programs and threads: the oldest is awaited
    before another is launched. A launch on several devices is enqueued on all of them before the
    next. Launches that block none count if a blocking one precedes them, since they are behind it
    in the devices' queues. ``calling`` lists the launches that call Python functions.
    """

    __slots__ = (
        "_is_bounded", "_launches", "_lock", "_patience", "_queues_nested", "bound", "calling",
    )  # fmt: skip

    def __init__(
        self, bound: int | None, *, queues_nested: bool = False, patience: float | None = None
    ) -> None:
        self._is_bounded = bound is not None
        self.bound = bound or _MOST
        self.calling: list[CallingLaunch] = []
        self._queues_nested, self._patience = queues_nested, patience
        self._lock = new_lock()  # reentrant: a finaliser or a signal handler may launch
        self._launches: deque[tuple[Callable[[], object], bool]] = deque()

    def __bool__(self) -> bool:
        """Whether a launch that blocks others may be in flight."""
        return bool(self._launches or self.calling)

    def launch(
        self,
        execute: Callable[..., Launched],
        collective: bool,
        *arguments: object,
        devices: Sequence[Device] = (),
    ) -> Launched:
        """Waits for a free slot; calls ``execute``, an ``execute_with_wait``, for its result."""
        nested = self.check_nested(devices)
        while True:
            with self._lock:
                if nested or len(self._launches) < self.bound:
                    launched = execute(*arguments)
                    if collective or self._launches:
                        self._launches.append((launched[1], collective))
                    return launched
                oldest = self._launches[0]
            nested = not self._await(oldest)

    def launch_on_one(
        self, execute: Callable[[Any], Any], arguments: Any, devices: Sequence[Device]
    ) -> Any:
        """Launches a program on one device that blocks no other.

        It occupies a slot in the device's queue until its arguments are ready. If there is no free
        slot, waits for the arguments first.
        """
        if not self.check_nested(devices):
            with self._lock:
                is_full = len(self._launches) >= self.bound
                if self._launches and not is_full:
                    self._launches.append(_BEHIND)
            if is_full:
                _await_arguments(devices[0].client, arguments)
        return execute(arguments)

    def made(self) -> list[CallingLaunch]:
        """Returns the launches that call Python functions and have been made."""
        return [launch for launch in [*self.calling] if launch.wait is not None]

    def begin(self, launch: CallingLaunch) -> None:
        """Waits for a free slot and reserves it for a launch that calls Python, until `end`.

        The caller makes the launch (`CallingLaunch.making`). Raises `FailedPrecondition` if it
        could not end before the launch whose function makes it.
        """
        nested = bool(self.calling or calls_under_way()) and self.check_nested(
            launch.devices, launch.functions
        )
        while not nested:
            with self._lock:
                self._forget_given_up()
                if len(self._launches) < self.bound:
                    self._launches.append(launch.entry)
                    self.calling.append(launch)
                    return
                oldest = self._launches[0]
            nested = not self._await(oldest)
        launch.outer = (*self._find_outer_launches(),)
        self._require_room()
        self.calling.append(launch)

    def end(self, launch: CallingLaunch) -> None:
        """Frees the slot of a launch; a second call does nothing.

        The program is released first, so that nothing of the launch is left once it is removed.
        """
        launch.release()
        with self._lock:
            if launch.wait is ended:
                return
            launch.set_ended()
            self._forget_given_up()
            if launch.entry in self._launches:  # a callback's launch is not in it
                self._launches.remove(launch.entry)
                self._forget_unless_blocking()

    def check_nested(self, devices: Sequence[Device], functions: Sequence[object] = ()) -> bool:
        """Returns whether the caller is a Python function that a program calls.

        Raises `FailedPrecondition` if its launch would wait for the launch that calls the function.
        Such a function may use another thread to launch. So a launch outside of functions waits
        until launches of other threads that would precede it have ended.
        """
        calls = calls_under_way()
        if not calls:
            for other in [*self.calling]:
                if other.thread != threading.get_ident():
                    self._await_turn(other, devices, functions)
            return False
        for outer in self._find_outer_launches():
            if self._is_before(outer, devices, functions):
                raise _refusal(calls, outer, devices)
        return True

    def _is_before(
        self, outer: CallingLaunch, devices: Sequence[Device], functions: Sequence[object]
    ) -> bool:
        """Whether a launch on some devices can only begin when ``outer`` has ended.

        The cause may be the backend, or ``functions`` whose calls the devices share.
        """
        if any(isinstance(x, SharedCallback) and x in outer.functions for x in functions):
            return True
        if len(devices) > 1:
            return self._is_bounded and len(outer.devices) > 1
        same = self._queues_nested and [*devices] == [*outer.devices]
        return same and not outer.is_within_call()

    def _find_deadline(self) -> float:
        """Returns the time until which a wait that begins now may last."""
        return time.monotonic() + (self._patience or calling_launch.PATIENCE)

    def _await_turn(
        self, other: CallingLaunch, devices: Sequence[Device], functions: Sequence[object]
    ) -> None:
        deadline = self._find_deadline()
        calls = other.functions
        while self._is_before(other, devices, functions) and not other.wait_for_end(0.01):
            if time.monotonic() > deadline:
                raise _refusal(calls, other, devices)

    def _require_room(self) -> None:
        """Waits until a device's queue has a free slot for a callback's launch."""
        deadline = 0.0
        while self._is_bounded and len(self.calling) >= 3 * self.bound:
            now = time.monotonic()
            deadline = deadline or self._find_deadline()
            if now > deadline:
                calls = calls_under_way() or self.calling[-1].functions
                raise FailedPrecondition(
                    f"{_title(calls)} launches a program while {len(self.calling)} launches wait "
                    "for Python functions: with more of them the backend's queue is full, and all "
                    "wait for ever. Fix: nest fewer programs in functions that programs call"
                )
            time.sleep(0.001)

    def _find_outer_launches(self) -> Iterator[CallingLaunch]:
        """Yields the launches that may call this thread's functions, and their outer launches."""
        calls, thread = calls_under_way(), threading.get_ident()
        found = [x for x in [*self.calling] if any(call in x.functions for call in calls)]
        # Several launches of a program may be in flight; one that calls on this thread is certain.
        found = [x for x in found if x.wait is None and x.thread == thread] or found
        seen: set[CallingLaunch] = set()
        while found:
            launch = found.pop()
            if launch not in seen:
                seen.add(launch)
                found += launch.outer
                yield launch

    def launcher(self, loaded: LoadedExecutable) -> Callable[[Sequence[Shards]], Sequence[Shards]]:
        """Returns `launch` for collectives of one executable, as a single function.

        After a launch on several devices the processor's caches are cold, so that each function on
        the way costs some microseconds instead of a tenth of one.
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

    def compiled_launcher(self, launcher: object, collective: bool, parts: int) -> object:
        """Returns a launcher of the compiled core that launches as `launch` does.

        While launches that call Python functions are running, it calls Python to launch.
        """
        return core.BoundedLauncher(
            launcher=launcher,
            queue=self._launches if parts > 1 else (),
            lock=self._lock,
            bound=self.bound,
            exchanges=collective,
            unless=(self.calling,),
        )

    def _await(self, oldest: tuple[Callable[[], object], bool]) -> bool:
        """Waits for the oldest launch; returns False if it calls Python and lasts too long.

        Waits without the lock, which its callbacks may need. If it calls Python, waits only until
        there is a slot: it may be waiting for the caller.
        """
        deadline = self._find_deadline()
        while oldest[0]() is False:  # removed later: an interrupt may end the wait
            if len(self._launches) < self.bound or time.monotonic() > deadline:
                return len(self._launches) < self.bound
        with self._lock:
            if self._launches and self._launches[0] is oldest:
                self._launches.popleft()
                self._forget_unless_blocking()
        return True

    def _forget_given_up(self) -> None:
        """Removes launches that have ended, or that an interrupt prevented."""
        for launch in [*self.calling]:
            if not launch.is_under_way():
                with suppress(ValueError):
                    self.calling.remove(launch)

    def _forget_unless_blocking(self) -> None:
        for _, blocking in self._launches:
            if blocking:
                return
        self._launches.clear()


_BEHIND = (ended, False)
"""The entry of a launch that only counts while a blocking one precedes it."""


def _await_arguments(client: Client, arguments: Sequence[Any]) -> None:
    """Waits for the arguments of a launch, in the forms that launchers accept. Raises no error."""
    given = [x for x in arguments if x is not None and not isinstance(x, np.ndarray)]
    await_shards = getattr(client, "await_shards", None)
    if await_shards is not None and await_shards(given):
        return
    for shards in given:
        for part in (shards,) if hasattr(shards, "block_until_ready") else shards:
            with suppress(PjrtError):
                part.block_until_ready()


def _title(calls: Sequence[object]) -> str:
    """Returns the name of the innermost function."""
    return str(getattr(calls[-1], "title", repr(calls[-1]))) if calls else "a Python function"


def _refusal(
    calls: Sequence[object], outer: CallingLaunch, devices: Sequence[Device]
) -> FailedPrecondition:
    """Returns the error for a function's launch that would wait for the launch ``outer``."""
    if len(devices) > 1:
        return FailedPrecondition(
            f"{_title(calls)} launches a program on {len(devices)} devices while the program that "
            f"calls it runs on {len(outer.devices)}: this backend starts the launched program when "
            "the calling program has ended, and that waits for the function. Fix: launch on one "
            "device in the function, or on another backend; or launch after the calling program"
        )
    return FailedPrecondition(
        f"{_title(calls)} launches a program on the device of the program that calls it: this "
        "library starts the launched program when the calling program has ended, and that waits "
        "for the function. Fix: compute with NumPy in the function, or on another backend (such as "
        'the backend "cpu", which runs such launches); or launch after the calling program'
    )
