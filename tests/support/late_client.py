"""Backends for exports: results that are ready later, and methods that fail on request."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.interface import CompileOptions, Event, Program
from plugrt.stablehlo.modules import parse
from plugrt_sdk import Backend, PendingEvent

Array = npt.NDArray[Any]

_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "stablehlo.add": np.add,
    "stablehlo.subtract": np.subtract,
    "stablehlo.multiply": np.multiply,
}


class Adder(Backend):
    """Programs of additions, subtractions and multiplications of equal shapes, on NumPy.

    ``failures`` maps the name of a method to the exception that it raises.
    """

    platform, version = "adder", "1"

    def __init__(self, devices: int = 1) -> None:
        self.failures: dict[str, BaseException] = {}
        self._count = devices

    def _meet(self, method: str) -> None:
        if method in self.failures:
            raise self.failures[method]

    def devices(self) -> Sequence[str]:
        return ["adder"] * self._count

    def put(self, array: Array, device: int) -> Array:
        self._meet("put")
        return array.copy()

    def get(self, handle: Array) -> Array:
        self._meet("get")
        return handle

    def delete(self, handle: Array) -> None:
        self._meet("delete")

    def copy(self, handle: Array, device: int) -> Array:
        self._meet("copy")
        return handle.copy()

    def replicas(self) -> int:
        return self._count

    def close(self) -> None:
        self._meet("close")

    def compile(self, program: Program, options: CompileOptions) -> Any:
        self._meet("compile")
        module = parse(program.code)
        with module.context:
            functions = [op for op in module.body.operations if op.operation.name == "func.func"]
            [main] = [op for op in functions if op.name.value == "main"]
            block = main.regions[0].blocks[0]
            numbers = {argument: i for i, argument in enumerate(block.arguments)}
            steps: list[tuple[Callable[[Any, Any], Any], list[int]]] = []
            for op in block.operations:
                operands = [numbers[o] for o in op.operands]
                if op.operation.name == "func.return":
                    results = operands
                    break
                steps.append((_BINARY[op.operation.name], operands))
                numbers[op.results[0]] = len(numbers)

        def launch(arguments: Sequence[Sequence[Array]]) -> list[list[Array]]:
            self._meet("launch")
            values = [[*shards] for shards in arguments]
            for step, (a, b) in steps:
                values.append([step(x, y) for x, y in zip(values[a], values[b], strict=True)])
            return [values[i] for i in results]

        return launch


class Worker:
    """Runs callbacks on a thread of its own, in order."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True, name="late-client").start()

    def _run(self) -> None:
        while True:
            self._waiting.get()()

    def later(self, call: Callable[[], None]) -> None:
        """Makes a call on the thread."""
        self._waiting.put(call)


@dataclass(frozen=True)
class LateArray:
    """An array that is ready later."""

    value: Array
    event: PendingEvent


class LateAdder(Adder):
    """`Adder`, whose arrays a worker completes later, or fails with ``late_error``."""

    def __init__(self, devices: int = 1) -> None:
        super().__init__(devices)
        self.late_error: BaseException | None = None
        self._worker = Worker()

    def _delay(self, value: Array) -> LateArray:
        event, error = PendingEvent(), self.late_error
        self._worker.later(event.complete if error is None else lambda: event.fail(error))
        return LateArray(value, event)

    def event(self, handle: LateArray) -> Event:
        return handle.event

    def put(self, array: Array, device: int) -> LateArray:
        return self._delay(super().put(array, device))

    def get(self, handle: LateArray) -> Array:
        return super().get(handle.value)

    def copy(self, handle: LateArray, device: int) -> LateArray:
        return self._delay(super().copy(handle.value, device))

    def compile(self, program: Program, options: CompileOptions) -> Any:
        launch = super().compile(program, options)

        def later(arguments: Sequence[Sequence[LateArray]]) -> list[list[LateArray]]:
            results = launch([[array.value for array in shards] for shards in arguments])
            return [[self._delay(value) for value in shards] for shards in results]

        return later
