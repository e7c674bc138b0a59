"""PhaseCompile: runs a compiler's phases separately."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plugrt.capi.abi import c_values, proto_wire
from plugrt.capi.abi._abi import ffi
from plugrt.capi.client.topology import Topology
from plugrt.capi.loading.library import Library
from plugrt.interface import CompileOptions

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData


class PhaseCompiler:
    """A library's compiler as a row of named phases; programs are StableHLO or protos."""

    def __init__(self, library: Library) -> None:
        table = library.extension("PhaseCompile")
        self._table = table

        made = table.call("PhaseCompile_Get_Compiler").phase_compiler
        self._pointer = table.own("PhaseCompile_Destroy_Compiler", "phase_compiler", made)

    @property
    def phases(self) -> Sequence[str]:
        """The names of the phases, in the order of execution."""
        args = self._table.call("PhaseCompile_Get_PhaseNames", phase_compiler=self._pointer)
        content = self._take(args, "phase_names")
        return [name.decode("utf-8", "backslashreplace") for name in content]

    def _take(self, args: CData, field: str) -> list[bytes]:
        """Returns copies of the strings in arrays of the library, and frees the arrays."""
        table, count = self._table, f"num_{field}"
        try:
            pointers = table.items(args, field, count)
            sizes = table.items(args, f"{field}_sizes", count)
            with table.reading(args, field):
                return [c_values.data(p, n) for p, n in zip(pointers, sizes, strict=True)]
        finally:
            table.call(
                "PhaseCompile_C_Buffers_Destroy",
                char_buffers=getattr(args, field),
                char_buffer_sizes=getattr(args, f"{field}_sizes"),
                num_char_buffers=getattr(args, count),
            )

    def run(
        self,
        programs: Sequence[bytes],
        phases: Sequence[str],
        topology: Topology,
        options: CompileOptions | None = None,
    ) -> list[bytes]:
        """Returns ``programs`` (serialised ``PartialProgramProto``) after the ``phases``."""
        inputs = [ffi.from_buffer(p) for p in programs]
        names = [ffi.from_buffer(p.encode()) for p in phases]
        encoded, size = c_values.chars(
            proto_wire.encode_checked_options(options or CompileOptions())
        )
        args = self._table.call(
            "PhaseCompile_Run_Phase",
            phase_compiler=self._pointer,
            input_programs=ffi.new("const char*[]", inputs),
            input_programs_sizes=ffi.new("size_t[]", [len(p) for p in inputs]),
            num_input_programs=len(inputs),
            phases_to_run=ffi.new("const char*[]", names),
            phases_to_run_sizes=ffi.new("size_t[]", [len(p) for p in names]),
            num_phases_to_run=len(names),
            compile_options=encoded,
            compile_options_size=size,
            topology=topology.pointer,
        )
        return self._take(args, "output_programs")
