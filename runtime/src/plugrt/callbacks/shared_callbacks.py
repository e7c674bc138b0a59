"""`SharedCallback`: a function that is called once for all devices of a divided program.

Each device's part of the program calls it. The first caller runs the function, and the others wait
for its result. So an exception ends all parts, and no library has to choose the caller. In JAX the
first device calls, and broadcasts the results. If the function raised, XLA ended the process after
the other devices had waited for the broadcast for 40 seconds.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from plugrt.callbacks.host_callbacks import NumberedCallback
from plugrt.errors import Internal, PjrtError
from plugrt.interface import HostCallback

Arrays = Sequence[npt.NDArray[Any]]


class _Call:
    """One call of the function, by several devices."""

    __slots__ = ("done", "failure", "left", "returned")

    def __init__(self, devices: int) -> None:
        self.done = threading.Event()
        self.left = devices
        self.returned: Arrays = ()
        self.failure: PjrtError | None = None


class SharedCallback(NumberedCallback):
    """A callback as the parts of a program call it: with the device's number, then its arguments.

    The n-th calls of all devices in a launch are one call. `begin` runs before each launch, after
    the previous one has ended: a failed launch may leave calls that only some devices have made.

    In a run of several processes ``here`` has the numbers of this process's devices. The process of
    the first device calls, and its program sends the results to the others, whose callbacks return
    zeros.
    """

    __slots__ = ("_calls", "_devices", "_is_called_here", "_lock", "_made")

    def __init__(self, of: NumberedCallback, devices: int, here: Sequence[int] = ()) -> None:
        super().__init__(
            of.function, of.title, has_effect=of.has_effect, ordered=of.ordered,
            blank=of.blank if here else None,
        )  # fmt: skip
        self._devices = len(here) or devices
        self._is_called_here = not here or 0 in here
        self._lock = threading.Lock()
        self.begin()

    def begin(self) -> None:
        """Discards the calls of the last launch."""
        with self._lock:
            self._made: Counter[int] = Counter()
            self._calls: dict[int, _Call] = {}

    def __call__(self, arguments: Arrays) -> Arrays:
        if not self._is_called_here:
            assert self.blank is not None
            return self.blank()
        device, *given = arguments
        call, is_first = self._join(int(device[0]))
        if not is_first:
            call.done.wait()
            if call.failure is not None:
                raise Internal(call.failure.message) from None
            return call.returned
        try:
            call.returned = super().__call__(given)
        except PjrtError as error:
            call.failure = error
            raise
        finally:
            call.done.set()
        return call.returned

    def _join(self, device: int) -> tuple[_Call, bool]:
        """Returns the call that a device's next call belongs to, and whether it is the first."""
        with self._lock:
            number = self._made[device]
            self._made[device] += 1
            call = self._calls.setdefault(number, _Call(self._devices))
            call.left -= 1
            if not call.left:
                del self._calls[number]
            return call, call.left == self._devices - 1


def share_callbacks(
    callbacks: Mapping[int, HostCallback], devices: int, here: Sequence[int] = ()
) -> tuple[dict[int, int], dict[int, HostCallback]]:
    """Returns the callbacks of a program that is divided over that many devices, by number.

    Callbacks that are called once for all devices are shared; the first dict has their new numbers.
    If other processes have some of the devices, ``here`` has the numbers of this process's.
    Callbacks for ``one_device`` are returned unchanged: no divided program may have them.
    """
    renumbered: dict[int, int] = {}
    made: dict[int, HostCallback] = {}
    for number, callback in callbacks.items():
        if isinstance(callback, NumberedCallback) and callback.is_shared:
            shared = SharedCallback(callback, devices, here)
            renumbered[number] = shared.number
            made[shared.number] = shared
        else:
            made[number] = callback
    return renumbered, made
