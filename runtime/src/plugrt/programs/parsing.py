"""Parses programs' modules, and converts them to a backend's format.

Also recognises files of other formats, for error messages.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from plugrt.errors import MissingTraceExtra, ProgramError, UnsupportedDtype
from plugrt.interface import Client, Program, TensorType

if TYPE_CHECKING:
    from plugrt.stablehlo.bindings import ir
import re

Version = tuple[int, int, int]


def has_bindings() -> bool:
    """Whether jaxlib's MLIR bindings are installed (the extra ``plugrt[trace]``)."""
    return importlib.util.find_spec("jaxlib") is not None


def parse_program(
    program: Program, *, dynamic: bool = False
) -> tuple[ir.Module, list[TensorType], list[TensorType]]:
    """Returns the module of a program, and the types of ``main``'s parameters and results.

    A type is an array's, or `plugrt.interface.TOKEN_TYPE`. With ``dynamic``, a dimension of unknown
    size is -1; without, the program is refused.

    Raises `ProgramError` for a module without a public function ``main``, and
    `MissingTraceExtra` without jaxlib.
    """
    if not has_bindings():
        raise MissingTraceExtra(
            'reading a StableHLO module here needs jaxlib: pip install "plugrt[trace]"'
        )
    from plugrt.stablehlo.modules import parse

    module = parse(program.code, program.name)
    return module, *main_types(module, program.name, dynamic=dynamic)


def main_types(
    module: ir.Module, name: str, *, dynamic: bool = False
) -> tuple[list[TensorType], list[TensorType]]:
    """Returns the types of a module's ``main``, and raises as `parse_program`."""
    from plugrt.stablehlo.attributes import symbol_of
    from plugrt.stablehlo.refusals import refuse_calls
    from plugrt.stablehlo.types import parameter_type

    main = next(
        (
            op
            for op in module.body.operations
            if op.operation.name == "func.func" and symbol_of(op) == "main"
        ),
        None,
    )
    if main is None:
        names = [name for name in map(symbol_of, module.body.operations) if name is not None]
        raise ProgramError(
            f"program {name!r} has no function 'main' to run; it has {names or 'none'}"
        )
    refuse_calls(module, name)
    signature = main.attributes["function_type"].value
    try:
        inputs = [parameter_type(t, dynamic=dynamic) for t in signature.inputs]
        results = [parameter_type(t, dynamic=dynamic) for t in signature.results]
    except UnsupportedDtype as error:
        raise ProgramError(f"program {name!r} cannot be run on arrays: {error}") from error
    return inputs, results


def convert_for_client(program: Program, client: Client) -> Program:
    """Returns the program for ``client``: without CHLO, at the client's StableHLO version.

    Without jaxlib, or in a format other than MLIR, the program is returned unchanged.
    """
    return convert_to_version(program, client.capabilities.stablehlo_current_version)


def convert_to_version(program: Program, version: Version | None) -> Program:
    """Returns the program for a reader of that StableHLO version (`convert_for_client`)."""
    if program.format != "mlir" or not has_bindings():
        return program
    return convert_module(parse_program(program)[0], program.name, version)


def convert_module(module: ir.Module, name: str, version: Version | None) -> Program:
    """Serialises a module for a StableHLO version, after converting CHLO in place."""
    from plugrt.stablehlo.modules import portable_artifact
    from plugrt.stablehlo.passes import legalize_chlo

    legalize_chlo(module)
    return Program(portable_artifact(module, version), "mlir", name)


_PICKLE = "a pickle; of what serialize_executable.serialize returns, the bytes alone are a program"
_MAGICS = {
    b"\x93NUMPY": "a NumPy array; arrays are arguments (plugrt run FILE --input ARRAY.npy)",
    b"PK": "a zip archive, such as NumPy's .npz",
    b"\x7fELF": "a library or a program of this system",
    b"\x1f\x8b": "compressed with gzip",
    b"\x89HDF": "an HDF5 file",
    b"%PDF": "a PDF document",
    b"\x80\x04": _PICKLE,
    b"\x80\x05": _PICKLE,
}
_MLIR = re.compile(
    rb"""(?:\s|//.*)*              # blanks and comments
    (?: module | func\.func | "[\w.]+"   # an operation, by its name or in the generic form
      | [#!][\w.$]+\s*= | \{-\# )        # an alias, or resources""",
    re.VERBOSE,
)


def is_like_mlir(text: bytes) -> bool:
    """Whether text begins like a StableHLO module, so that the parser's error is useful."""
    return _MLIR.match(text) is not None


def describe_contents(code: bytes) -> str:
    """Returns the recognised format, or the first bytes, for the end of a sentence."""
    for magic, what in _MAGICS.items():
        if code.startswith(magic):
            return f"it is {what}"
    begin = code.lstrip()[:40]
    line = begin.splitlines()[0] if begin.isascii() and begin.strip() else begin[:16]
    shown = repr(line.decode()) if line.isascii() and b"\0" not in line else line.hex(" ")
    return f"it begins with {shown}"
