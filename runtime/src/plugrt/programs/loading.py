"""`load_program`: loads a program from a file, bytes, text, an MLIR or HLO module, or an export."""

from __future__ import annotations

import errno
import io
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from plugrt.base import files
from plugrt.errors import FileRefused, ProgramError
from plugrt.execution.arrays.aval import Aval, intern_host_aval
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Program
from plugrt.programs.executables import EXECUTABLE, find_maker
from plugrt.programs.export_file import MLIR_MAGIC, is_like_export, read_export
from plugrt.programs.exported import Exported, ExportedProgram
from plugrt.programs.hlo_programs import read_hlo
from plugrt.programs.parsing import describe_contents, has_bindings, is_like_mlir
from plugrt.programs.saved_function import FUNCTION, is_saved_function

MAX_BYTES = 2 * 2**30
"""The maximum size of a program in bytes: XLA's protobuf form cannot be larger."""
_MAX_TEXT = 64


class JaxExport(Protocol):
    """A ``jax.export.Exported``."""

    @property
    def mlir_module_serialized(self) -> bytes:
        """Returns its module as MLIR bytecode."""

    def serialize(self) -> bytes | bytearray:
        """Returns the serialised export."""


class MlirOperation(Protocol):
    """An operation of jaxlib's bindings of MLIR."""

    def write_bytecode(self, file: object, /) -> object:
        """Writes MLIR bytecode into a file."""


class MlirModule(Protocol):
    """A module of jaxlib's bindings of MLIR."""

    @property
    def operation(self) -> MlirOperation:
        """The module as an operation."""


class HloComputation(Protocol):
    """The result of `plugrt.xla_computation`, or jaxlib's ``XlaComputation`` or ``HloModule``."""

    def as_serialized_hlo_module_proto(self) -> bytes:
        """Returns the bytes of an ``HloModuleProto``."""


ProgramSource: TypeAlias = (
    Program
    | str
    | os.PathLike[str]
    | bytes
    | bytearray
    | memoryview
    | Exported
    | JaxExport
    | MlirModule
    | HloComputation
)
"""The sources that `load_program` accepts."""


@with_argument_errors
def load_program(source: ProgramSource, *, name: str = "") -> Program:
    """Returns a program of StableHLO or HLO, checked as far as the installed packages allow.

    ``source`` is a path, StableHLO text, MLIR bytecode, a portable artifact of any version that the
    installed StableHLO reads, the bytes of an export of JAX, a ``jax.export.Exported``, an MLIR
    module of jaxlib's, HLO (text, which needs jaxlib, a serialised ``HloModuleProto`` or
    ``HloProto``, or the result of `plugrt.xla_computation`), a saved executable, or a `Program`. A
    ``str`` is text if it spans lines or contains ``module`` or ``func.func``, else a path. An
    export becomes an `plugrt.export.ExportedProgram`, HLO for one device a program in the format
    ``hlo``. The bytes of a compiled object's ``serialize`` are a program in the format
    ``executable``, and the bytes of `plugrt.serialize_executable.serialize` one in the format
    ``compiled function``.

    A file may hold 2 GiB at most. Raises `ProgramError` with the parser's line and column (not
    without jaxlib, where the backend parses), or for a path that is not a file, and
    `FileNotFoundError`.

    >>> text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    >>> plugrt.load_program(text, name="identity").name
    'identity'
    """
    if isinstance(source, Program):
        return source
    if isinstance(source, Exported):
        return _export_program(source, name, "<export>")
    code, title = _read(source)
    if find_maker(code) is not None:
        return Program(code, EXECUTABLE, name or _stem(title))
    if is_saved_function(code):
        return Program(code, FUNCTION, name or _stem(title))
    if not code.strip():
        raise ProgramError(f"{title} is empty; expected a program in StableHLO or HLO")
    hlo = read_hlo(code, title, name or ("" if title.startswith("<") else _stem(title)))
    if hlo is not None:
        return hlo
    if not code.startswith(MLIR_MAGIC) and _is_binary(code):
        exported = _keep_weak_types(_read_export(code, title), source)
        return _export_program(exported, name, title)
    _check_syntax(code, title)
    return Program(code, "mlir", name or _stem(title))


def _check_syntax(code: bytes, title: str) -> None:
    if has_bindings():
        from plugrt.stablehlo.modules import parse

        try:
            parse(code, title)
        except ProgramError as error:
            if code.startswith(MLIR_MAGIC) or is_like_mlir(code):
                raise
            raise ProgramError(
                f"{title} is not a program: text of StableHLO begins with a module or a func.func, "
                f"text of HLO with HloModule; {describe_contents(code)}", error.line, error.column,
            ) from error  # fmt: skip


def _keep_weak_types(exported: Exported, source: object) -> Exported:
    """Returns an export with the weak types of JAX's object, since files do not contain them."""

    def weaken(side: str) -> tuple[Aval, ...]:
        known: tuple[Aval, ...] = getattr(exported, side)
        stated = getattr(source, side, known)
        return tuple(
            intern_host_aval(aval.shape, aval.dtype, bool(one.weak_type))
            for aval, one in zip(known, stated, strict=True)
        )

    return replace(exported, in_avals=weaken("in_avals"), out_avals=weaken("out_avals"))


def _export_program(exported: Exported, name: str, title: str) -> ExportedProgram:
    code = exported.mlir_module_serialized
    _check_syntax(code, title)
    named = exported.fun_name if title.startswith("<") else _stem(title)
    return ExportedProgram(code, "mlir", name or named, exported=exported)


def _stem(title: str) -> str:
    return "main" if title.startswith("<") else Path(title).stem


def _read(source: Any) -> tuple[bytes, str]:
    if isinstance(source, str) and _is_text(source):
        return source.encode(), "<text>"
    if isinstance(source, str | os.PathLike):
        return read_contents(source), str(source)
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), "<bytes>"
    if isinstance(getattr(source, "mlir_module_serialized", None), bytes):
        return _serialize(source), "<jax.export>"
    if callable(getattr(source, "as_serialized_hlo_module_proto", None)):
        return bytes(source.as_serialized_hlo_module_proto()), "<hlo>"
    operation = getattr(source, "operation", None)
    if operation is not None and hasattr(operation, "write_bytecode"):
        stream = io.BytesIO()
        operation.write_bytecode(stream)
        return stream.getvalue(), "<module>"
    raise ProgramError(
        f"{source!r:.{_MAX_TEXT}} of type {type(source).__qualname__} is not a program; expected a "
        "path, text or bytes of StableHLO or HLO, an MLIR module, or a jax.export.Exported"
    )


def read_contents(source: str | os.PathLike[str]) -> bytes:
    """Returns the contents of a regular file, or of an open one such as ``/dev/stdin`` or
    ``/dev/fd/3``.

    Raises `FileNotFoundError`, and `ProgramError` for anything that is not a file, or is larger
    than `MAX_BYTES`. A FIFO in a folder is refused: reading it could block forever.
    """
    try:
        number = files.descriptor_in(source)
        if number is not None:
            return files.read_descriptor(number, MAX_BYTES, source)
        return files.read_bytes(source, MAX_BYTES)
    except FileRefused as error:
        raise ProgramError(
            f"{error}; expected a file with a program, of {MAX_BYTES >> 30} GiB at most. "
            "The output of a command can be saved, or piped to standard input: plugrt run - < FILE"
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL
        no_name = isinstance(error, ValueError) or error.errno in (errno.ENOENT, errno.ENAMETOOLONG)
        if not no_name:
            raise
        text = ", and no program: text of StableHLO has a func.func, text of HLO several lines"
        says = "No such file" + text * isinstance(source, str)
        raise FileNotFoundError(errno.ENOENT, says, source) from None


def _is_text(source: str) -> bool:
    return "\n" in source or "func.func" in source or ("module" in source and "{" in source)


def _serialize(exported: JaxExport) -> bytes:
    try:
        return bytes(exported.serialize())
    except Exception as error:  # JAX raises many types, as for a class that is not registered
        raise ProgramError(
            f"the export {exported!r:.50}… cannot be serialised: {type(error).__name__}: "
            f"{error}. Fix: pip install flatbuffers where that is missing; or compile its "
            "mlir_module_serialized, which takes flat arguments"
        ) from error


def _read_export(code: bytes, title: str) -> Exported:
    if is_like_export(code):
        return read_export(code, title)
    raise ProgramError(
        f"{title} is neither StableHLO text nor MLIR bytecode, no HLO and no export of JAX: "
        f"{describe_contents(code)}"
    )


def _is_binary(code: bytes) -> bool:
    # Not by an `except`, which would also catch what a signal handler raises.
    return b"\0" in code or code.decode(errors="ignore").encode() != code
