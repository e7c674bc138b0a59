"""A backend that works asynchronously: a thread per device, donation, a second memory.

NumPy does the devices' arithmetic. Launches and puts return at once, with arrays whose events a
device's thread completes. Run this file to see it: python examples/asynchronous_backend.py
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import plugrt
from plugrt.interface import CompileOptions, Program
from plugrt_numpy.launches import compile_launch
from plugrt_sdk import Backend, BackendPlugin, PendingEvent, read_aliases, result_types

HostArray = npt.NDArray[Any]


class Slot:
    """A handle: an array on a device. It is ready when its event is complete."""

    def __init__(self) -> None:
        self.event = PendingEvent()
        self.value: HostArray | None = None


class Worker:
    """A device's thread. It works in the order of submission."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[tuple[Callable[[], Sequence[HostArray]], Sequence[Slot]]] = (
            queue.SimpleQueue()
        )
        threading.Thread(target=self._run, daemon=True).start()

    def submit(self, work: Callable[[], Sequence[HostArray]], count: int = 1) -> list[Slot]:
        """Returns slots for the results of ``work``."""
        slots = [Slot() for _ in range(count)]
        self._work.put((work, slots))
        return slots

    def _run(self) -> None:
        while True:
            work, slots = self._work.get()
            try:
                values = work()
            except Exception as error:  # noqa: BLE001  # whatever it is, it is the slots' error
                for slot in slots:
                    slot.event.fail(error)
                continue
            for slot, value in zip(slots, values, strict=True):
                slot.value = value
                slot.event.complete()


class Asynchronous(Backend):
    """Devices with one thread and two memories each. A program runs on one device."""

    platform, version = "asynchronous", "1"

    def __init__(self, num_devices: int = 2) -> None:
        self.workers = [Worker() for _ in range(num_devices)]

    def devices(self) -> Sequence[str]:
        return ["a thread"] * len(self.workers)

    def put(self, array: HostArray, device: int) -> Slot:
        copy = array.copy()  # now: the host may change its array after `put` returns
        [slot] = self.workers[device].submit(lambda: [copy])
        return slot

    def get(self, handle: Slot) -> HostArray:
        return read(handle)

    def compile(self, program: Program, options: CompileOptions) -> Any:
        run, count = compile_launch(program, options), len(result_types(program))
        assert options.device_assignment is not None
        [device] = options.device_assignment.flat

        def launch(arguments: Sequence[Sequence[Slot]], consumed: Collection[int]) -> Any:
            slots = [slot for [slot] in arguments]

            def work() -> list[HostArray]:
                values = [[read(slot)] for slot in slots]  # raises the error of a failed slot
                for i in consumed:
                    slots[i].value = None  # the array has no other user, so its memory is freed
                return [result for [result] in run(values)]

            return [[slot] for slot in self.workers[device].submit(work, count)]

        return launch

    def event(self, handle: Slot) -> PendingEvent:
        return handle.event

    def donated(self, program: Program, options: CompileOptions) -> Collection[int]:
        return read_aliases(program)

    def memories(self, device: int) -> Sequence[str]:
        return ["device", "pinned_host"]

    def put_in_memory(self, array: HostArray, device: int, kind: str) -> Slot:
        return self.put(array, device)

    def copy(self, handle: Slot, device: int) -> Slot:
        [slot] = self.workers[device].submit(lambda: [read(handle).copy()])
        return slot

    def copy_to_memory(self, handle: Slot, device: int, kind: str) -> Slot:
        return self.copy(handle, device)


def read(slot: Slot) -> HostArray:
    """Waits for a slot's array; raises the error of a failed slot."""
    slot.event.wait()
    assert slot.value is not None
    return slot.value


def main() -> None:
    """Launches programs while the device is busy."""
    backend = Asynchronous()
    plugrt.plugins.register(BackendPlugin("asynchronous", lambda: backend, priority=1000))
    busy = threading.Event()
    x = plugrt.device_put(np.float32([1, 2, 3]))
    double = plugrt.jit(lambda x: x + x)
    double(x).block_until_ready()

    def wait() -> list[HostArray]:
        busy.wait()
        return [np.zeros(1)]

    backend.workers[0].submit(wait)
    y = double(double(x))
    print("ready:", y.is_ready())
    busy.set()
    print("value:", np.asarray(y))


if __name__ == "__main__":
    main()
