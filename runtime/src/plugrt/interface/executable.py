"""`Executable`: a compiled program that is not tied to devices in use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plugrt.interface.backend_object import BackendObject
from plugrt.interface.memory_layout import Layout
from plugrt.interface.promises import OptionValue
from plugrt.interface.values import TensorType

if TYPE_CHECKING:
    from plugrt.interface.program import Program


@dataclass(frozen=True, slots=True)
class MemoryAnalysis:
    """An executable's memory in bytes (``PJRT_Executable_GetCompiledMemoryStats``)."""

    generated_code_size_in_bytes: int = 0
    argument_size_in_bytes: int = 0
    output_size_in_bytes: int = 0
    alias_size_in_bytes: int = 0
    temp_size_in_bytes: int = 0
    host_generated_code_size_in_bytes: int = 0
    host_argument_size_in_bytes: int = 0
    host_output_size_in_bytes: int = 0
    host_alias_size_in_bytes: int = 0
    host_temp_size_in_bytes: int = 0
    peak_memory_in_bytes: int = 0


class Executable(BackendObject, ABC):
    """A compiled program that is not tied to devices in use."""

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the program, for display."""

    @property
    @abstractmethod
    def num_replicas(self) -> int:
        """The number of replicas that it was compiled for."""

    @property
    @abstractmethod
    def num_partitions(self) -> int:
        """The number of partitions that it was compiled for."""

    @property
    @abstractmethod
    def output_types(self) -> Sequence[TensorType]:
        """The types of the results on one device. Known when the executable is made."""

    @property
    def input_types(self) -> Sequence[TensorType]:
        """The types of the arguments on one device. Optional."""
        self._unimplemented("input_types")

    @property
    def donated_parameters(self) -> Sequence[int]:
        """The numbers of the parameters whose arguments a launch consumes, ascending. Optional.

        Those that the compiler used for results, where that is less than the program offers.
        """
        self._unimplemented("donated_parameters")

    @property
    def output_memory_kinds(self) -> Sequence[str]:
        """The memory kind of each result. Optional."""
        self._unimplemented("output_memory_kinds")

    @property
    def parameter_memory_kinds(self) -> Sequence[str]:
        """The memory kind of each argument. Optional."""
        self._unimplemented("parameter_memory_kinds")

    def output_layouts(self) -> Sequence[Layout]:
        """The layout of each result in its device's memory. Optional (``layouts``).

        Where the program leaves the layout to the compiler (``mhlo.layout_mode = "auto"``) this is
        the compiler's choice.
        """
        self._unimplemented("output_layouts")

    def parameter_layouts(self) -> Sequence[Layout]:
        """The layout required of each argument in its device's memory. Optional (``layouts``)."""
        self._unimplemented("parameter_layouts")

    def output_shardings(self) -> Sequence[bytes]:
        """The sharding of each result, a serialised ``xla.OpSharding``. Optional."""
        self._unimplemented("output_shardings")

    def parameter_shardings(self) -> Sequence[bytes]:
        """The sharding required of each argument, a serialised ``xla.OpSharding``. Optional."""
        self._unimplemented("parameter_shardings")

    def cost_analysis(self) -> Mapping[str, OptionValue]:
        """``flops``, ``bytes accessed`` and the compiler's other figures. Optional."""
        self._unimplemented("cost_analysis")

    def memory_analysis(self) -> MemoryAnalysis:
        """The memory that a launch needs. Optional."""
        self._unimplemented("memory_analysis")

    def optimized_program(self) -> Program:
        """The program after optimisation, in a format of the backend's choice. Optional."""
        self._unimplemented("optimized_program")

    def as_text(self) -> str:
        """The optimised program as readable text. Optional."""
        self._unimplemented("as_text")

    def fingerprint(self) -> bytes:
        """Equal for equal programs and options on equal versions. Optional."""
        self._unimplemented("fingerprint")

    def generated_code_size_in_bytes(self) -> int:
        """The size of the machine code. Optional."""
        self._unimplemented("generated_code_size_in_bytes")

    def serialize(self) -> bytes:
        """Returns bytes for `Client.deserialize_executable` on an equal backend. Optional."""
        self._unimplemented("serialize")
