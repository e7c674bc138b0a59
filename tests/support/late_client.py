"""Backends for exports: results that are ready later, and methods that fail when told to."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.errors import PjrtError
from plugrt.interface import (
    Capabilities,
    CompileOptions,
    Device,
    Event,
    ExecuteOptions,
    LoadedExecutable,
    Program,
    Shards,
)
from plugrt.stablehlo.modules import parse
from plugrt_sdk import Backend, BackendClient
from plugrt_sdk.buffer import BackendBuffer
from plugrt_sdk.executable import BackendLoadedExecutable

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
        """Has a call made on the thread."""
        self._waiting.put(call)


class LateEvent(Event):
    """Ready when a worker came to it, and with the error that its buffer was made to have."""

    def __init__(self, worker: Worker, error: PjrtError | None) -> None:
        self._ready = threading.Event()
        self._worker = worker
        self._error = error
        worker.later(self._ready.set)

    def is_ready(self) -> bool:
        return self._ready.is_set()

    def wait(self) -> None:
        self._ready.wait()
        if self._error is not None:
            raise self._error

    def on_ready(self, callback: Callable[[PjrtError | None], None]) -> None:
        self._worker.later(lambda: callback(self._error))


class LateBuffer(BackendBuffer):
    """A buffer whose contents are there later."""

    __slots__ = ("event",)

    event: Event

    def ready_event(self) -> Event:
        return self.event

    def to_host(self) -> Array:
        self.event.wait()
        return super().to_host()


class LateExecutable(BackendLoadedExecutable):
    """A program whose results are there later, or fail then with the client's ``late_error``."""

    __slots__ = ("owner",)

    owner: LateClient

    def execute(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> Sequence[Shards]:
        return [
            tuple(self.owner.delay(buffer) for buffer in shards)
            for shards in super().execute(arguments, options)
        ]


class LateClient(BackendClient):
    """A client of `Adder` whose launches are asynchronous."""

    def __init__(self, devices: int = 1) -> None:
        super().__init__(Adder(devices))
        self.worker = Worker()
        self.late_error: PjrtError | None = None

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(asynchronous_dispatch=True)

    def delay(self, buffer: Any) -> LateBuffer:
        """Returns a buffer of the same handle that is ready later."""
        late = LateBuffer(self._session, buffer.handle, buffer.type, buffer.device)
        late.event = LateEvent(self.worker, self.late_error)
        return late

    def buffer_from_host(self, array: Array, device: Device, *rest: Any) -> LateBuffer:
        return self.delay(super().buffer_from_host(array, device, *rest))

    def compile(self, program: Program, options: CompileOptions) -> LoadedExecutable:
        made = super().compile(program, options)
        late = LateExecutable(
            self._session, made.executable, list(made.addressable_devices), made._launch
        )
        late.owner = self
        return late
