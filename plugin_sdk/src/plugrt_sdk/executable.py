"""`BackendExecutable`: a compiled program's types, analyses and serialisation."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from plugrt.interface import (
    Executable,
    Layout,
    MemoryAnalysis,
    OptionValue,
    Program,
    TensorType,
)
from plugrt_sdk.backend import Backend
from plugrt_sdk.compiled import Compiled, settings_of
from plugrt_sdk.layouts import layout_of
from plugrt_sdk.returns import require, require_figures
from plugrt_sdk.serialization import serialize


class BackendExecutable(Executable):
    """A compiled program: its types, and the backend's analyses of it."""

    __slots__ = ("_backend", "_methods", "compiled")

    def __init__(self, backend: Backend, methods: frozenset[str], compiled: Compiled) -> None:
        self._backend = backend
        self._methods = methods
        self.compiled = compiled
        """The object that the author's methods receive."""

    @property
    def backend_name(self) -> str:
        return f"{self._backend.platform!r} (plugrt_sdk)"

    @property
    def name(self) -> str:
        return self.compiled.program.name

    @property
    def num_replicas(self) -> int:
        return self.compiled.options.num_replicas

    @property
    def num_partitions(self) -> int:
        return self.compiled.options.num_partitions

    @property
    def input_types(self) -> Sequence[TensorType]:
        """The types of the parameters on one device."""
        return self.compiled.input_types

    @property
    def donated_parameters(self) -> Sequence[int]:
        return sorted(self.compiled.donated)

    @property
    def output_types(self) -> Sequence[TensorType]:
        return self.compiled.output_types

    @property
    def output_memory_kinds(self) -> Sequence[str]:
        return self.compiled.output_memory_kinds

    def output_layouts(self) -> Sequence[Layout]:
        self._require("put_in_layout")
        return [layout_of(kind) for kind in self.compiled.output_types]

    def parameter_layouts(self) -> Sequence[Layout]:
        self._require("put_in_layout")
        return [layout_of(kind) for kind in self.compiled.input_types]

    def output_shardings(self) -> Sequence[bytes]:
        return self._shardings()[1]

    def parameter_shardings(self) -> Sequence[bytes]:
        return self._shardings()[0]

    def _shardings(self) -> tuple[Sequence[bytes], Sequence[bytes]]:
        self._require("chosen_shardings")
        return self._backend.chosen_shardings(self.compiled)

    def _require(self, method: str) -> None:
        if method not in self._methods:
            self._unimplemented(method)

    def cost_analysis(self) -> Mapping[str, OptionValue]:
        self._require("cost_analysis")
        backend = self._backend
        return require_figures(backend, "cost_analysis", backend.cost_analysis(self.compiled))

    def memory_analysis(self) -> MemoryAnalysis:
        self._require("memory_analysis")
        found = self._backend.memory_analysis(self.compiled)
        return require(self._backend, "memory_analysis", found, MemoryAnalysis, "a MemoryAnalysis")

    def generated_code_size_in_bytes(self) -> int:
        return self.memory_analysis().generated_code_size_in_bytes

    def optimized_program(self) -> Program:
        self._require("optimized_program")
        found = self._backend.optimized_program(self.compiled)
        return require(self._backend, "optimized_program", found, Program, "a Program")

    def as_text(self) -> str:
        program = self.optimized_program()
        if program.format != "mlir":
            self._unimplemented(f"as_text of the format {program.format!r}")
        from plugrt.stablehlo.modules import parse

        return str(parse(program.code, program.name))

    def serialize(self) -> bytes:
        self._require("serialize")
        return serialize(self._backend, self.compiled)

    def fingerprint(self) -> bytes:
        compiled, backend = self.compiled, self._backend
        options = compiled.options
        stated = (
            backend.platform,
            backend.version,
            compiled.program.format,
            settings_of(options),
            sorted(options.env_overrides.items()),
        )
        return hashlib.sha256(repr(stated).encode() + compiled.program.code).digest()
