"""`CpuExecutable`: a compiled program: types, analyses, serialisation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from plugrt.errors import Unimplemented
from plugrt.interface import (
    TOKEN_TYPE,
    DeviceAssignment,
    Executable,
    Layout,
    MemoryAnalysis,
    OptionValue,
    Program,
    TensorType,
)
from plugrt.wire.hlo_proto import donated_parameters
from plugrt_cpu import adapter, serialization
from plugrt_cpu.errors import JAXLIB_ERRORS, translate
from plugrt_cpu.types import layout_of, type_in_layout


class CpuExecutable(Executable):
    """A compiled program; ``raw`` is jaxlib's loaded executable.

    ``memory_kind`` is the default one of its devices, and of its results if jaxlib reports none.
    """

    __slots__ = (
        "_payload",
        "assignment",
        "calls_python",
        "donated_parameters",
        "input_types",
        "name",
        "num_partitions",
        "num_replicas",
        "options",
        "output_memory_kinds",
        "output_types",
        "raw",
    )

    donated_parameters: Sequence[int]
    input_types: Sequence[TensorType]
    name: str
    num_partitions: int
    num_replicas: int
    output_memory_kinds: Sequence[str]
    output_types: Sequence[TensorType]

    def __init__(
        self,
        raw: Any,
        name: str,
        assignment: DeviceAssignment,
        options: bytes,
        payload: bytes | None = None,
        *,
        memory_kind: str,
        calls_python: bool = False,
    ) -> None:
        self.raw = raw
        self.calls_python = calls_python
        self.name = name
        self.assignment = assignment
        rows = assignment.device_ids
        self.num_replicas, self.num_partitions = len(rows), len(rows[0])
        self.options = options
        self._payload = payload
        module = self._module().as_serialized_hlo_module_proto()
        parameters, results = adapter.program_shape(module)
        if len(parameters) == 1 and parameters[0].is_tuple():
            parameters = parameters[0].tuple_shapes()
        self.input_types = [_tensor_type(s, "parameter") for s in parameters]
        self.output_types = tuple(_tensor_type(s, "result") for s in results)
        self.donated_parameters = tuple(sorted(donated_parameters(module)))
        self.output_memory_kinds = adapter.output_memory_kinds(raw) or (memory_kind,) * len(
            self.output_types
        )

    def output_layouts(self) -> Sequence[Layout]:
        return [layout_of(t) for t in self.output_types]

    def parameter_layouts(self) -> Sequence[Layout]:
        return [layout_of(t) for t in self.input_types]

    def output_shardings(self) -> Sequence[bytes]:
        found = self._shardings("output_shardings", self.raw.get_output_shardings)
        return found if self.output_types else ()  # XLA reports one for the empty tuple

    def parameter_shardings(self) -> Sequence[bytes]:
        return self._shardings("parameter_shardings", self.raw.get_parameter_shardings)

    def _shardings(self, what: str, ask: Callable[[], Any]) -> Sequence[bytes]:
        found = self._ask(ask)
        if found is None:  # the program is not partitioned
            self._unimplemented(what)
        return [bytes(sharding.SerializeToString()) for sharding in found]

    def cost_analysis(self) -> Mapping[str, OptionValue]:
        analysis: Mapping[str, OptionValue] = self._ask(self.raw.cost_analysis)
        return analysis

    def memory_analysis(self) -> MemoryAnalysis:
        stats = self._ask(self.raw.get_compiled_memory_stats)
        known = [f.name for f in fields(MemoryAnalysis) if hasattr(stats, f.name)]
        return MemoryAnalysis(**{name: int(getattr(stats, name)) for name in known})

    def optimized_program(self) -> Program:
        """The module after XLA's passes, as a serialised ``HloModuleProto`` (format ``hlo``)."""
        return Program(self._module().as_serialized_hlo_module_proto(), "hlo", self.name)

    def as_text(self) -> str:
        return str(self._module().to_string())

    def fingerprint(self) -> bytes:
        return bytes(self.raw.fingerprint)

    def generated_code_size_in_bytes(self) -> int:
        return int(self._ask(self.raw.size_of_generated_code_in_bytes))

    def serialize(self) -> bytes:
        """Returns bytes that a client of the same jaxlib on the same kind of CPU loads again.

        Raises `Unimplemented` for a program that calls Python functions, which have no such form.
        """
        if self.calls_python:
            self._unimplemented(f"serialize() of {self.name!r}, which calls Python functions,")
        # Workaround for xla-serialized-twice: jaxlib 0.10.2 serialises an executable that was
        # itself deserialised without its functions, so that an executable loaded from these bytes
        # cannot be launched ("NOT_FOUND: Function … not found (type id: 1)"). So the original bytes
        # are kept. No public report of it was found.
        payload = self._payload or self._ask(self.raw.serialize)
        return serialization.pack(payload, self.name, self.assignment, self.options)

    def _module(self) -> Any:
        return self._ask(self.raw.hlo_modules)[0]

    def _ask(self, what: Any) -> Any:
        try:
            return what()
        except JAXLIB_ERRORS as error:
            raise translate(error) from error


def _tensor_type(shape: Any, role: str) -> TensorType:
    # Workaround for xla-token-dimensions: XLA ends the process ("Expected an array shape")
    # when the dimensions of a token are read, since https://github.com/openxla/xla/pull/24375.
    if not shape.is_array():
        if str(shape) == "token[]":
            return TOKEN_TYPE
        raise Unimplemented(
            f"the program has a {role} of type {shape}; plugrt's cpu plugin has arrays and tokens"
        )
    dimensions, text = tuple(shape.dimensions()), shape.layout().to_string()
    row_major = ",".join(map(str, range(len(dimensions) - 1, -1, -1)))
    layout = None if text == f"{{{row_major}}}" else Layout.from_text(text)
    if layout is not None and layout.is_row_major:
        layout = None
    return type_in_layout(dimensions, shape.numpy_dtype(), layout)
