"""`CallingLaunch`: a launch of a program that calls Python functions; errors if it cannot."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from plugrt.callbacks.host_callbacks import calls_of_thread
from plugrt.errors import ArgumentError, Unimplemented
from plugrt.interface import Client, CompileOptions, Device, Program
from plugrt.lifetime.waiter import ended

PATIENCE = 30.0
"""Seconds that a launch waits for one that calls Python, which may be waiting for it."""

_LOOKS_AGAIN = 0.1
"""Seconds between two checks for an end that an interrupt kept from being reported."""


class Launches(Protocol):
    """The queue that a launch is in."""

    def end(self, launch: CallingLaunch) -> None:
        """Frees the slot of a launch."""


class CallingLaunch:
    """A launch of a program that calls Python functions, from before it is made to its end.

    Its thread makes it ``with launch.making:``. An interrupt cannot leave a lock's ``with``
    incomplete, so an unlocked ``making`` shows that a launch was abandoned.
    """

    __slots__ = (
        "_ended", "_releasing", "devices", "entry", "functions", "is_remembered", "launches",
        "making", "ordered", "outer", "program", "thread", "wait",
    )  # fmt: skip

    def __init__(
        self,
        launches: Launches,
        functions: Sequence[object],
        devices: Sequence[Device],
        program: Program | None = None,
        ordered: bool = False,
    ) -> None:
        self.launches = launches
        self.functions = functions
        self.devices = devices
        self.program = program
        """Kept alive until the launch has ended, with the functions that it calls."""
        self.ordered = ordered
        self.thread = threading.get_ident()
        """The thread that makes it; the functions may be called on it, within the launch."""
        self.outer: tuple[CallingLaunch, ...] = ()
        """The launches whose functions make this one."""
        self.wait: Callable[[], object] | None = None
        """Waits for its end; None before it is made."""
        self.is_remembered = False
        """Whether a thread waits for its end."""
        self.making = threading.Lock()
        self._ended = threading.Lock()  # not an event: see `plugrt.lifetime.thread_work`
        self._ended.acquire()
        self._releasing = threading.RLock()  # a finaliser within it may launch, and release
        self.entry = (partial(self.wait_for_end, 0.01), True)
        """Its entry in the queue; the wait returns False after 0.01 s."""

    def is_under_way(self) -> bool:
        """Whether it has neither ended nor been abandoned."""
        return self.wait is not ended and (self.is_remembered or self.making.locked())

    def is_ready(self) -> bool:
        """Whether it is known to have ended; also False if that is only known by waiting."""
        return self.wait is ended

    def finish(self) -> None:
        """Waits for the end of the launch, which was made, and reports it to the queue."""
        wait = self.wait
        if wait is not None:
            wait()
        self.launches.end(self)

    def wait_for_end(self, seconds: float) -> bool:
        """Waits for its end, also while another thread makes it; False after ``seconds``."""
        deadline = time.monotonic() + seconds
        while self.is_under_way():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            if self._ended.acquire(timeout=min(left, _LOOKS_AGAIN)):
                self._ended.release()  # for other waiters; if interrupted here, they check again
                break
        return True

    def is_within_call(self) -> bool:
        """Whether its thread is in one of its functions, within the call that launches."""
        if self.wait is not None:
            return False
        return any(call in self.functions for call in calls_of_thread(self.thread))

    def release(self) -> None:
        """Drops the program of an ended launch. Concurrent calls wait until it is freed.

        That may run finalisers of users, which may launch programs.
        """
        with self._releasing:
            self.program, self.functions, self.outer = None, (), ()

    def set_ended(self) -> None:
        """Marks it as ended; a second call does nothing."""
        if self.wait is not ended:
            self.wait = ended
            self._ended.release()


def require_host_callbacks(client: Client, program: Program, options: CompileOptions) -> None:
    """Raises `Unimplemented` if the program calls Python and the backend cannot.

    Raises `ArgumentError` for a call that needs one device, in a program over several.
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
            if getattr(call, "one_device", False):
                raise ArgumentError(
                    f"{getattr(call, 'title', call)} is ordered, and its program is divided over "
                    f"{devices}. Take ordered=False, plugrt.io_callback or one device"
                )


def refuse_callbacks(program: Program, reason: str) -> Unimplemented:
    """Returns the error for a program that calls Python functions but cannot."""
    calls = "; ".join(str(getattr(x, "title", x)) for x in program.callbacks.values())
    return Unimplemented(f"{program.name!r} calls {calls}; {reason}")
