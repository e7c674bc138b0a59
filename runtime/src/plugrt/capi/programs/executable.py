"""`Executable`: a compiled program's types, analyses and serialisation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from plugrt import interface
from plugrt.capi.abi import c_values
from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.element_types import element_type_to_dtype
from plugrt.capi.abi.structs import new_struct
from plugrt.capi.buffers.donated_arguments import donated_parameters
from plugrt.capi.extensions import layouts, shardings
from plugrt.capi.extensions.abi_version import executable_abi
from plugrt.capi.library.client_handle import ClientHandle
from plugrt.capi.library.serialized_envelope import Origin, encode_envelope
from plugrt.capi.loading.library import Library
from plugrt.errors import InvalidArgument, InvalidReply, Unimplemented, UnsupportedDtype
from plugrt.interface import Layout, MemoryAnalysis, OptionValue, Program, TensorType
from plugrt.wire import hlo_proto
from plugrt.wire.protobuf import Content

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

T = TypeVar("T")
_MAX_BYTES = (1 << 63) - 1
"""The maximum of ``int64_t``, PJRT's type for numbers of bytes."""
_MEMORY_FIELDS = tuple(MemoryAnalysis.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Known:
    """Facts of a program from its compilation, where its library does not state them."""

    name: str
    num_replicas: int
    num_partitions: int


class Executable(interface.Executable):
    """A ``PJRT_Executable`` that this object owns.

    ``keep`` must outlive it: a topology, or the handle of a client and the loaded executable that
    it came from; the library may refer to them. ``exiting`` is non-empty
    once nothing may be freed. ``client`` is passed if the program may have other layouts than the
    client's default ones.
    """

    __slots__ = (
        "__weakref__",
        "_client",
        "_known",
        "_library",
        "_name",
        "_origin",
        "_output_types",
        "_parameter_layouts",
        "_pointer",
    )  # fmt: skip

    def __init__(
        self,
        library: Library,
        pointer: CData,
        origin: Origin,
        keep: tuple[object, ...],
        exiting: Sequence[bool] = (),
        client: ClientHandle | None = None,
        known: Known | None = None,
    ) -> None:
        self._library = library
        self._origin = origin
        self._client = client if "Layouts" in library.extensions else None
        self._parameter_layouts: Sequence[Layout] | None = None

        self._known = known
        self._pointer = library.own("Executable_Destroy", "executable", pointer, keep, exiting)
        self._output_types: tuple[TensorType, ...] | None = None
        self._name: str | None = None

    @property
    def backend_name(self) -> str:
        return self._library.path

    @property
    def pointer(self) -> CData:
        """The ``PJRT_Executable*``."""
        return self._pointer

    @property
    def library(self) -> Library:
        """The library that compiled it."""
        return self._library

    def _call(self, what: str, **inputs: object) -> CData:
        return self._library.call(f"Executable_{what}", executable=self._pointer, **inputs)

    @property
    def name(self) -> str:
        if self._name is None:
            self._name = self._ask(
                "name of a program",
                lambda: self._library.text(self._call("Name"), "executable_name"),
                lambda known: known.name,
            )
        return self._name

    def _ask(self, operation: str, way: Callable[[], T], otherwise: Callable[[Known], T]) -> T:
        """Returns the fact that the library states, else the one known from the compilation."""
        known = self._known
        ways = way, None if known is None else lambda: otherwise(known)
        return self._library.ways.take(operation, known is None, *ways)

    @property
    def num_replicas(self) -> int:
        return self._ask(
            "number of parts",
            lambda: int(self._call("NumReplicas").num_replicas),
            lambda known: known.num_replicas,
        )

    @property
    def num_partitions(self) -> int:
        return self._ask(
            "number of parts",
            lambda: int(self._call("NumPartitions").num_partitions),
            lambda known: known.num_partitions,
        )

    @property
    def num_outputs(self) -> int:
        """How many results a launch has on each device."""
        return int(self._call("NumOutputs").num_outputs)

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        if self._output_types is None:
            self._output_types = self._library.ways.take(
                "types of results", "",
                lambda: tuple(self._read_output_types()),
                self._result_types_of_program,
            )  # fmt: skip
        return self._output_types

    def _result_types_of_program(self) -> tuple[TensorType, ...]:
        try:
            return self._read_program(hlo_proto.result_types)
        except KeyError as error:
            raise Unimplemented(f"the types of the results of {self.name!r}: {error}") from error

    @property
    def input_types(self) -> tuple[TensorType, ...]:
        """The types in the optimised program, as PJRT states none; `Unimplemented` for tokens."""
        try:
            return self._read_program(hlo_proto.flat_parameters)[0]
        except KeyError as error:
            raise Unimplemented(f"the types of the arguments of {self.name!r}: {error}") from error

    @property
    def donated_parameters(self) -> Sequence[int]:
        found = donated_parameters(self)
        return self._unimplemented("donated_parameters") if found is None else sorted(found)

    def _read_program(self, read: Callable[[Content], T]) -> T:
        """Returns the result of ``read`` on the optimised program; `InvalidReply` if damaged."""
        program = self.optimized_program()
        try:
            return read(hlo_proto.read_module(program))
        except ValueError as error:
            raise InvalidReply(
                f"{self._library.owner} gave an optimised program of {self.name!r} that is "
                f"damaged: {error}"
            ) from error

    def _read_output_types(self) -> list[TensorType]:
        library = self._library
        types = self._call("OutputElementTypes")
        shapes = self._call("OutputDimensions")
        element_types = library.items(types, "output_types", "num_output_types")
        ranks = library.items(shapes, "dim_sizes", "num_outputs")
        flat = library.items(shapes, "dims", sum(ranks))
        if len({len(element_types), len(ranks), self._count_outputs(len(ranks))}) != 1:
            raise library.invalid(
                shapes,
                f"it stated {len(ranks)} results, where the library gave "
                f"{len(element_types)} element types and counts {self.num_outputs} results",
            )
        found, start = [], 0
        for element_type, rank in zip(element_types, ranks, strict=True):
            shape = tuple(flat[start : start + rank])
            found.append(self._tensor_type(shapes, shape, element_type))
            start += rank
        return found if self._client is None else self._add_layouts(self._client, found)

    def _add_layouts(self, client: ClientHandle, types: list[TensorType]) -> list[TensorType]:
        """Returns the types of results with the layouts that are not the default."""
        try:
            found = self.output_layouts()
        except Unimplemented:
            return types
        if len(found) != len(types):
            raise InvalidReply(
                f"{self._library.owner} states {len(types)} results of {self.name!r} and the "
                f"layouts of {len(found)}"
            )
        return [
            t
            if t.is_token or layouts.default_layout(client, t).is_met_by(layout)
            else replace(t, layout=layout)
            for t, layout in zip(types, found, strict=True)
        ]

    @property
    def names_layouts(self) -> bool:
        """Whether it may have arguments or results in another layout than the client's default."""
        return self._client is not None

    def output_layouts(self) -> Sequence[Layout]:
        return self._layouts(layouts.output_layouts, hlo_proto.output_layouts)

    def parameter_layouts(self) -> Sequence[Layout]:
        if self._parameter_layouts is None:
            self._parameter_layouts = self._layouts(
                layouts.parameter_layouts, hlo_proto.parameter_layouts
            )
        return self._parameter_layouts

    def _layouts(
        self,
        ask: Callable[[Library, Any], Sequence[Layout]],
        read: Callable[[Content], Sequence[Layout]],
    ) -> Sequence[Layout]:
        """Returns the layouts that the library states, else those in its optimised program.

        The extension has both functions since PJRT 0.93; a library without it uses C order.
        """
        has_layouts = "Layouts" in self._library.extensions
        return self._library.ways.take(
            "layouts", ask,
            lambda: ask(self._library, self._pointer),
            (lambda: self._read_program(read)) if has_layouts else None,
        )  # fmt: skip

    def _count_outputs(self, otherwise: int) -> int:
        try:
            return self.num_outputs
        except Unimplemented:
            return otherwise

    def _tensor_type(self, shapes: CData, shape: tuple[int, ...], element_type: int) -> TensorType:
        try:
            dtype = element_type_to_dtype(element_type)
        except UnsupportedDtype as error:
            raise UnsupportedDtype(f"a result of {self._library.owner}: {error}") from None
        if min(shape, default=0) < 0 or math.prod(shape) * max(dtype.itemsize, 1) > _MAX_BYTES:
            raise self._library.invalid(shapes, f"it stated the shape {shape}, which no array has")
        return TensorType(shape, dtype)

    @property
    def output_memory_kinds(self) -> Sequence[str]:
        args = self._call("OutputMemoryKinds")
        return self._library.strings(args, "memory_kinds", "memory_kind_sizes", "num_outputs")

    @property
    def parameter_memory_kinds(self) -> Sequence[str]:
        args = self._call("ParameterMemoryKinds")
        return self._library.strings(args, "memory_kinds", "memory_kind_sizes", "num_parameters")

    def output_shardings(self) -> Sequence[bytes]:
        """The shardings from the library, or from its optimised program; raises `Unimplemented` if
        neither has them.
        """
        found = self._shardings(
            shardings.output_shardings, hlo_proto.output_shardings, "output_shardings"
        )
        return found if self.output_types else ()

    def parameter_shardings(self) -> Sequence[bytes]:
        """The shardings from the library, or from its optimised program; raises `Unimplemented` if
        neither has them.
        """
        return self._shardings(
            shardings.parameter_shardings, hlo_proto.parameter_shardings, "parameter_shardings"
        )

    def _shardings(
        self,
        ask: Callable[[Library, Any], Sequence[bytes] | None],
        read: Callable[[Content], Sequence[bytes] | None],
        what: str,
    ) -> Sequence[bytes]:
        found = self._library.ways.take(
            "shardings", ask,
            lambda: ask(self._library, self._pointer),
            lambda: self._read_program(read),
        )  # fmt: skip
        return self._unimplemented(what) if found is None else found

    def cost_analysis(self) -> Mapping[str, OptionValue]:
        args = self._call("GetCostAnalysis")
        return self._library.named_values(args, "properties", "num_properties")

    def memory_analysis(self) -> MemoryAnalysis:
        args = self._call("GetCompiledMemoryStats")
        return MemoryAnalysis(**{name: int(getattr(args, name)) for name in _MEMORY_FIELDS})

    def optimized_program(self) -> Program:
        program = new_struct("PJRT_Program")
        args = self._call("OptimizedProgram", program=ffi.addressof(program[0]))
        size = program.code_size
        with self._library.reading(args, "code_size"):
            program.code = code = c_values.allocate(size)
        self._call("OptimizedProgram", program=ffi.addressof(program[0]))
        if program.code_size > size:
            raise self._library.invalid(
                args, f"it wrote {program.code_size} bytes of code where it had asked for {size}"
            )
        with self._library.reading(args, "format"):
            form = c_values.text(program.format, program.format_size)
        return Program(code=bytes(ffi.buffer(code, program.code_size)), format=form, name=self.name)

    def fingerprint(self) -> bytes:
        return self._library.data(self._call("Fingerprint"), "executable_fingerprint")

    def generated_code_size_in_bytes(self) -> int:
        return int(self._call("SizeOfGeneratedCodeInBytes").size_in_bytes)

    def serialize(self) -> bytes:
        abi = executable_abi(self._library, self._pointer)
        return encode_envelope(self.serialize_bare(), self._origin, abi)

    def serialize_bare(self) -> bytes:
        """The library's own bytes, without the header that states their origin."""
        args = self._call("Serialize")
        return self._library.owned_bytes(
            args, "serialized_bytes", "serialized_executable", "serialized_executable_deleter"
        )

    def compile_options(self) -> bytes:
        """The ``CompileOptionsProto`` that it was compiled with (PJRT 0.87 and later)."""
        args = self._call("GetCompileOptions")
        return self._library.owned_bytes(
            args,
            "serialized_bytes",
            "serialized_compile_options",
            "serialized_compile_options_deleter",
        )


def program_struct(program: Program) -> tuple[object, list[object]]:
    """Returns (``PJRT_Program*``, objects to keep alive)."""
    if not program.code:
        raise InvalidArgument(f"the program {program.name!r} is empty")
    made = new_struct("PJRT_Program")
    code, made.code_size = c_values.chars(program.code)
    form, made.format_size = c_values.chars(program.format)
    made.code, made.format = ffi.cast("char*", code), form
    return made, [code, form]
