"""`LateLaunches`: the NumPy backend, whose launches run on threads and begin on request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.interface import CompileOptions, Event, Handler, Program
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import Backend, PendingEvent

Array = npt.NDArray[Any]


@dataclass
class LateArray:
    """An array that is ready when its event is complete."""

    event: PendingEvent
    value: Array | None = None


class LateLaunches(Backend):
    """Calls ``hold(n)`` on the thread of the n-th launch (from 1) before that runs.

    Use programs with results: only these show when a launch of a Python backend ends.
    """

    platform, version = "late", "1"

    def __init__(self, hold: Callable[[int], Any] = lambda n: None) -> None:
        self._inner = NumpyBackend()
        self.hold = hold
        self.launched = 0

    def devices(self) -> Sequence[str]:
        return ["late"]

    def put(self, array: Array, device: int) -> LateArray:
        event = PendingEvent()
        event.complete()
        return LateArray(event, array.copy())

    def get(self, handle: LateArray) -> Array:
        assert handle.value is not None
        return handle.value

    def event(self, handle: LateArray) -> Event:
        return handle.event

    def register_handler(self, target: str, handler: Handler) -> None:
        self._inner.register_handler(target, handler)

    def compile(self, program: Program, options: CompileOptions) -> Any:
        count = len(self._inner.device_types(program, options)[1])
        run: Any = self._inner.compile(program, options)

        def launch(arguments: Sequence[Sequence[LateArray]]) -> list[list[LateArray]]:
            self.launched += 1
            results = [[LateArray(PendingEvent())] for _ in range(count)]
            args = (run, arguments, results, self.launched)
            threading.Thread(target=self._run, args=args, daemon=True).start()
            return results

        return launch

    def _run(self, run: Any, arguments: Any, results: Any, number: int) -> None:
        self.hold(number)
        for [argument] in arguments:
            argument.event.wait()
        try:
            values = run([[x.value for x in shards] for shards in arguments])
        except BaseException as error:  # noqa: BLE001  # that of the results
            for [result] in results:
                result.event.fail(error)
            return
        for [result], [value] in zip(results, values, strict=True):
            result.value = np.asarray(value)
            result.event.complete()
