"""`load_program`: a program from a file, bytes, text, an MLIR module or a JAX export."""

from __future__ import annotations

import errno
import importlib
import importlib.util
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from plugrt import files
from plugrt.argument_errors import with_argument_errors
from plugrt.errors import FileRefused, MissingTraceExtra, ProgramError, UnsupportedDtype
from plugrt.interface import Client, Program, TensorType
from plugrt.programs.formats import begins_as_mlir, describe_contents

if TYPE_CHECKING:
    from plugrt.stablehlo.bindings import ir

MLIR_MAGIC = b"ML\xefR"
MAX_BYTES = 2 * 2**30
"""The bound on a program, in bytes: XLA's own form of one, a protobuf, holds less."""
_MAX_TEXT = 64


class JaxExport(Protocol):
    """A ``jax.export.Exported``."""

    @property
    def mlir_module_serialized(self) -> bytes:
        """Its module, as MLIR bytecode."""


class MlirOperation(Protocol):
    """An operation of jaxlib's bindings of MLIR."""

    def write_bytecode(self, file: Any, /) -> object:
        """Writes MLIR bytecode into a file."""


class MlirModule(Protocol):
    """A module of jaxlib's bindings of MLIR."""

    @property
    def operation(self) -> MlirOperation:
        """The module as an operation."""


ProgramSource: TypeAlias = (
    Program | str | os.PathLike[str] | bytes | bytearray | memoryview | JaxExport | MlirModule
)
"""What `load_program` makes a program of."""


@with_argument_errors
def load_program(source: ProgramSource, *, name: str = "") -> Program:
    """Returns a StableHLO program, checked as far as the installed packages allow.

    ``source`` is a path, StableHLO text, MLIR bytecode, a portable artifact of any version that
    the installed StableHLO reads, what ``jax.export`` serialises (reading that needs jax), a
    ``jax.export.Exported``, an MLIR module of jaxlib's, or a `Program`. A ``str`` is text if it
    spans lines or holds ``module`` or ``func.func``, else a path.

    A file may hold 2 GiB at most. Raises `ProgramError` with the parser's line and column (not
    without jaxlib, where the backend parses), or for what is no file, and `FileNotFoundError`.

    >>> text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    >>> plugrt.load_program(text, name="identity").name
    'identity'
    """
    if isinstance(source, Program):
        return source
    code, title = _read(source)
    if not code.strip():
        raise ProgramError(f"{title} is empty; expected a StableHLO module")
    code = _unwrap_export(code, title)
    if has_bindings():
        from plugrt.stablehlo.modules import parse

        try:
            parse(code, title)
        except ProgramError as error:
            if code.startswith(MLIR_MAGIC) or begins_as_mlir(code):
                raise
            raise ProgramError(
                f"{title} is no StableHLO text, which begins with a module or a func.func: "
                f"{describe_contents(code)}", error.line, error.column,
            ) from error  # fmt: skip
    return Program(code, "mlir", name or _stem(title))


def has_bindings() -> bool:
    """Whether jaxlib's MLIR bindings are installed (the extra ``plugrt[trace]``)."""
    return importlib.util.find_spec("jaxlib") is not None


def _stem(title: str) -> str:
    return "main" if title.startswith("<") else Path(title).stem


def _read(source: Any) -> tuple[bytes, str]:
    if isinstance(source, str) and _is_text(source):
        return source.encode(), "<text>"
    if isinstance(source, str | os.PathLike):
        return read_contents(source), str(source)
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), "<bytes>"
    exported = getattr(source, "mlir_module_serialized", None)
    if isinstance(exported, bytes):
        return exported, "<jax.export>"
    operation = getattr(source, "operation", None)
    if operation is not None and hasattr(operation, "write_bytecode"):
        stream = io.BytesIO()
        operation.write_bytecode(stream)
        return stream.getvalue(), "<module>"
    raise ProgramError(
        f"{source!r:.{_MAX_TEXT}} of type {type(source).__qualname__} is no program; expected a "
        "path, StableHLO text or bytes, an MLIR module, or a jax.export.Exported"
    )


def read_contents(source: str | os.PathLike[str]) -> bytes:
    """Returns what a regular file holds, or an open one, named as ``/dev/stdin`` or ``/dev/fd/3``.

    Raises `FileNotFoundError`, and `ProgramError` for what is no file, or above `MAX_BYTES`. A FIFO
    in a folder is refused: reading it could block forever.
    """
    try:
        number = files.descriptor_in(source)
        if number is not None:
            return files.read_descriptor(number, MAX_BYTES, source)
        return files.read_bytes(source, MAX_BYTES)
    except FileRefused as error:
        raise ProgramError(
            f"{error}; expected a file with a StableHLO module, of {MAX_BYTES >> 30} GiB at most. "
            "The output of a command can be saved, or piped to standard input: plugrt run - < FILE"
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a name that holds a NUL
        no_name = isinstance(error, ValueError) or error.errno in (errno.ENOENT, errno.ENAMETOOLONG)
        if not no_name:
            raise
        text = ", and no StableHLO text, which has a module or a func.func"
        says = "No such file" + text * isinstance(source, str)
        raise FileNotFoundError(errno.ENOENT, says, source) from None


def _is_text(source: str) -> bool:
    return "\n" in source or "func.func" in source or ("module" in source and "{" in source)


def _unwrap_export(code: bytes, title: str) -> bytes:
    """Returns the module inside a serialised ``jax.export``; other code unchanged."""
    if code.startswith(MLIR_MAGIC) or not code.strip() or not _is_flatbuffer(code):
        return code
    if importlib.util.find_spec("jax") is None:
        raise ProgramError(
            f"{title} is neither StableHLO text nor MLIR bytecode: {describe_contents(code)}. If "
            "jax.export wrote it, jax is needed to read it: pip install jax, or save "
            "exported.mlir_module_serialized instead"
        )
    export = importlib.import_module("jax.export")
    try:
        inner: bytes = export.deserialize(bytearray(code)).mlir_module_serialized
    except Exception as error:  # jax raises exceptions of many types for other bytes
        raise ProgramError(
            f"{title} is neither StableHLO text nor MLIR bytecode, and no export that the "
            f"installed jax can read: {describe_contents(code)}"
        ) from error
    return inner


def _is_flatbuffer(code: bytes) -> bool:
    try:
        code.decode()
    except UnicodeDecodeError:
        return True
    return b"\0" in code


def parse_program(program: Program) -> tuple[ir.Module, list[TensorType], list[TensorType]]:
    """Returns the module of a program, and the types of ``main``'s parameters and results.

    Those are types of arrays, and `plugrt.interface.TOKEN_TYPE`.

    Raises `ProgramError` for a module without a public function ``main``, and
    `MissingTraceExtra` without jaxlib.
    """
    if not has_bindings():
        raise MissingTraceExtra(
            'reading a StableHLO module here needs jaxlib: pip install "plugrt[trace]"'
        )
    from plugrt.stablehlo.attributes import symbol_of
    from plugrt.stablehlo.modules import parse
    from plugrt.stablehlo.refusals import refuse_endless_calls
    from plugrt.stablehlo.types import parameter_type

    module = parse(program.code, program.name)
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
            f"program {program.name!r} has no function 'main' to run; it has {names or 'none'}"
        )
    refuse_endless_calls(module, program.name)
    signature = main.attributes["function_type"].value
    try:
        inputs = [parameter_type(t) for t in signature.inputs]
        results = [parameter_type(t) for t in signature.results]
    except UnsupportedDtype as error:
        raise ProgramError(f"program {program.name!r} cannot be run on arrays: {error}") from error
    return module, inputs, results


def convert_for_client(program: Program, client: Client) -> Program:
    """Returns the program as ``client`` takes it: without CHLO, at its StableHLO version.

    Without jaxlib, or in a format other than MLIR, the program is returned unchanged.
    """
    return convert_to_version(program, client.capabilities.stablehlo_current_version)


def convert_to_version(program: Program, version: tuple[int, int, int] | None) -> Program:
    """Returns the program as a reader of that StableHLO version takes it (`convert_for_client`)."""
    if program.format != "mlir" or not has_bindings():
        return program
    from plugrt.stablehlo.modules import portable_artifact
    from plugrt.stablehlo.passes import legalize_chlo

    module, _, _ = parse_program(program)
    legalize_chlo(module)
    code = portable_artifact(module, version)
    return Program(code, "mlir", program.name)
