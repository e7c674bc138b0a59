"""`compile_program`: gives a backend a program to compile, and reads its types and devices."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from plugrt.errors import InvalidArgument, ProgramError, Unimplemented
from plugrt.frames.argument_errors import after_checks
from plugrt.interface import CompileOptions, Layout, Program, TensorType
from plugrt.interface.memory_layout import AutoLayout
from plugrt.programs.parsing import convert_to_version, parse_program
from plugrt_sdk.backend import Backend
from plugrt_sdk.compiled import Compiled, Launch
from plugrt_sdk.layouts import lay_out, layouts_of
from plugrt_sdk.reading import attributes_of
from plugrt_sdk.returns import require_sequence, wrong_return

if TYPE_CHECKING:
    from plugrt.stablehlo.bindings import ir


@after_checks
def compile_program(
    backend: Backend,
    methods: Collection[str],
    program: Program,
    options: CompileOptions,
    kinds: Sequence[str],
) -> Compiled:
    """Compiles a program with the backend.

    ``methods`` are the methods that the backend overrides, ``kinds`` the memory kinds of a device.
    The backend always receives a portable artifact.
    """
    if program.format != "mlir":
        raise InvalidArgument(
            f"{backend.platform!r} (plugrt_sdk) takes programs of the format 'mlir'; "
            f"{program.name!r} is of {program.format!r}"
        )
    program = as_artifact(program, backend)
    module, inputs, outputs = parse_program(program)
    if options.num_partitions > 1:
        inputs, outputs = _device_types(backend, program, options) or (inputs, outputs)
    if program.may_name_layouts:
        taken, given = layouts_of(module, chooses="put_in_layout" in methods)
        inputs = _lay_out_all(inputs, taken, methods, backend)
        outputs = _lay_out_all(outputs, given, methods, backend)
    launch = require_launch(backend, "compile", backend.compile(program, options))
    return Compiled(
        program,
        options,
        launch,
        tuple(inputs),
        tuple(outputs),
        _read_donated(backend, methods, program, options, len(inputs)),
        _read_memories(module, len(inputs), len(outputs), kinds, backend),
    )


def _lay_out_all(
    types: Sequence[TensorType],
    layouts: Sequence[Layout | AutoLayout | None],
    methods: Collection[str],
    backend: Backend,
) -> list[TensorType]:
    name = f"{backend.platform!r} (plugrt_sdk)"
    return [
        lay_out(kind, layout, methods, name) for kind, layout in zip(types, layouts, strict=True)
    ]


def require_launch(backend: Backend, method: str, launch: Any) -> Launch:
    """Returns what `Backend.compile` returned, if it can be called."""
    if not callable(launch):
        raise wrong_return(backend, method, "a function that launches the program", launch)
    found: Launch = launch
    return found


def _device_types(
    backend: Backend, program: Program, options: CompileOptions
) -> tuple[list[TensorType], list[TensorType]] | None:
    found = backend.device_types(program, options)
    if found is None:
        return None
    fits = isinstance(found, tuple) and len(found) == 2
    sides = [list(side) for side in found] if fits else []
    if not fits or not all(isinstance(kind, TensorType) for side in sides for kind in side):
        expected = "None, or the TensorTypes of the parameters and of the results"
        raise wrong_return(backend, "device_types", expected, found)
    return sides[0], sides[1]


def _read_memories(
    module: ir.Module, parameters: int, results: int, kinds: Sequence[str], backend: Backend
) -> tuple[str, ...]:
    """Returns the memory kind of each result: as the program states, else the default.

    Raises `Unimplemented` for a parameter or a result in an unknown memory kind.
    """
    stated: tuple[str, ...] = ()
    for what, side, count in (
        ("a parameter", "arg_attrs", parameters), ("a result", "res_attrs", results),
    ):  # fmt: skip
        stated = tuple(
            attributes["mhlo.memory_kind"].value if "mhlo.memory_kind" in attributes else kinds[0]
            for attributes in attributes_of(module, side, count)
        )
        for kind in stated:
            if kind not in kinds:
                raise Unimplemented(
                    f"{what} is to be in the memory {kind!r}; {backend.platform!r} has {kinds}"
                )
    return stated


def _read_donated(
    backend: Backend,
    methods: Collection[str],
    program: Program,
    options: CompileOptions,
    count: int,
) -> frozenset[int]:
    if "donated" not in methods:
        return frozenset()
    expected = f"numbers of the {count} parameters of {program.name!r}"
    given = backend.donated(program, options)
    numbers = list(given) if isinstance(given, Mapping) else given
    found = frozenset(require_sequence(backend, "donated", numbers, expected))
    if not all(isinstance(i, int) and 0 <= i < count for i in found):
        raise wrong_return(backend, "donated", expected, given)
    return found


def as_artifact(program: Program, backend: Backend) -> Program:
    """Returns StableHLO of any form as a portable artifact that the backend reads.

    Programs that cannot be written as one (operations of other dialects, constants in resources)
    are returned unchanged: the backend's error names the operation.
    """
    from plugrt.stablehlo.modules import is_portable_artifact

    if is_portable_artifact(program.code):
        return program
    try:
        return convert_to_version(program, backend.stablehlo_version)
    except ProgramError:
        return program
