"""Launches small programs without collectives on one device after the other.

A launch on four devices costs jaxlib 0.10 50 to 80 µs, however small the program: each device's
part runs on its own thread, and all are joined. Four launches on one device each cost 18 µs
together. They run one after the other on the caller's thread, so this is for programs that are
shorter than starting the threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from plugrt.capi.programs.launch_order import are_independent, is_small
from plugrt.errors import PjrtError
from plugrt_cpu import adapter, serialization
from plugrt_cpu.device import ClientBase, CpuDevice
from plugrt_cpu.errors import JAXLIB_ERRORS, translate
from plugrt_cpu.executable import CpuExecutable
from plugrt_cpu.jaxlib_import import jaxlib_minor
from plugrt_cpu.one_part import for_one_device
from plugrt_cpu.shards import CpuShards
from plugrt_cpu.tracebacks import collecting, stop_recording
from plugrt_cpu.types import array_type


class Replicas:
    """One program loaded on each device by itself."""

    __slots__ = ("_handlers", "_launches", "_launches_with_tokens", "_places", "_types")

    @classmethod
    def load(
        cls, client: ClientBase, compiled: CpuExecutable, devices: tuple[CpuDevice, ...]
    ) -> Replicas | None:
        """Returns the program loaded again for each device, None if that does not apply.

        It does not apply if the parts exchange data or have much work, if there are other
        processes, or if jaxlib does not load its own bytes.
        """
        if compiled.num_replicas * compiled.num_partitions != len(devices):
            return None
        # Workaround for jaxlib-load-warnings
        if jaxlib_minor() < (0, 10):
            return None  # jaxlib 0.9 prints many warnings when it deserialises an executable
        try:
            if not is_small(compiled.cost_analysis()) or not are_independent(compiled.as_text()):
                return None
            return cls(client, compiled, devices)
        except (PjrtError, *JAXLIB_ERRORS):
            return None  # launching on all devices at once is correct, only slower

    def __init__(
        self, client: ClientBase, compiled: CpuExecutable, devices: tuple[CpuDevice, ...]
    ) -> None:
        raw_client = client.require_open()
        packed = serialization.unpack(compiled.serialize())
        with_device = for_one_device(packed.payload, compiled.num_replicas, compiled.num_partitions)
        memory_kinds, types = compiled.output_memory_kinds, compiled.output_types
        self._types = types
        self._places = [client.place(devices, memory_kind) for memory_kind in memory_kinds]
        self._launches: list[Callable[..., Any]] = []
        self._launches_with_tokens: list[Callable[..., Any]] = []
        self._handlers: list[list[Any]] = []
        for number, device in enumerate(devices):
            raw = raw_client.deserialize_executable(
                with_device(number, device.id), adapter.device_list([device.raw])
            )
            self._launches.append(raw.execute_sharded)
            self._launches_with_tokens.append(partial(raw.execute_sharded, with_tokens=True))
            self._handlers.append(
                [
                    adapter.result_handler(
                        array_type(t.shape, t.dtype)[1], device.memory(memory_kind).place.sharding
                    )
                    for t, memory_kind in zip(types, memory_kinds, strict=True)
                ]
            )

    @property
    def launches(self) -> tuple[tuple[Callable[..., Any], Callable[..., Any], list[Any]], ...]:
        """For each device jaxlib's function, its form with a token, and the results' handlers."""
        return tuple(zip(self._launches, self._launches_with_tokens, self._handlers, strict=True))

    def launch(self, columns: Sequence[Sequence[Any]]) -> list[CpuShards]:
        """Returns the results for jaxlib's arrays ``columns[argument][device]``."""
        rows, tokens = [], []
        try:
            if collecting:
                stop_recording()
            for i, launch in enumerate(self._launches_with_tokens):
                results = launch([column[i] for column in columns])
                tokens.append(results.consume_token())
                rows.append(results.consume_with_handlers(self._handlers[i], strict=False))
        except JAXLIB_ERRORS as error:
            raise translate(error) from error
        made = list(map(CpuShards.from_parts, zip(*rows, strict=True), self._types, self._places))
        ends = tuple(tokens)
        for shards in made:
            shards._ends = ends
        return made
