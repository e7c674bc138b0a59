"""Parses StableHLO text, bytecode and portable artifacts, and writes the latter."""

from __future__ import annotations

import io
import re

from plugrt.errors import ProgramError
from plugrt.stablehlo.attributes import symbol_of
from plugrt.stablehlo.bindings import MLIRError, hlo, ir, new_context, register_shardy
from plugrt.stablehlo.diagnostics import explain, message_of, place_of
from plugrt.stablehlo.refusals import refuse_deep_nesting

MLIR_MAGIC = b"ML\xefR"
_PORTABLE_PRODUCER = b"StableHLO_v"
_NOT_IN_SYMBOLS = re.compile(r"\W")

Version = tuple[int, int, int]


def current_version() -> Version:
    """The newest StableHLO version that the installed bindings write."""
    return parse_version(hlo.get_current_version())


def minimum_version() -> Version:
    """The oldest StableHLO version that the installed bindings write and read."""
    return parse_version(hlo.get_minimum_version())


def portable_version() -> Version:
    """The StableHLO version of readers that are 12 weeks older than the installed bindings."""
    weeks = hlo.StablehloCompatibilityRequirement.WEEK_12
    return parse_version(hlo.get_version_from_compatibility_requirement(weeks))


def parse_version(text: str) -> Version:
    """Reads ``"1.13.3"``."""
    major, minor, patch = map(int, text.split("."))
    return major, minor, patch


def is_portable_artifact(code: bytes) -> bool:
    """Whether the bytes are MLIR bytecode whose producer is StableHLO's serialiser."""
    return code.startswith(MLIR_MAGIC) and _PORTABLE_PRODUCER in code[:64]


def portable_artifact(module: ir.Module, target: Version | None = None) -> bytes:
    """Returns the module as a portable artifact for a consumer at StableHLO ``target``.

    Uses the older of ``target`` and the version of the bindings; with None the latter.
    """
    ours = current_version()
    version = min(target, ours) if target else ours
    text, code = ".".join(map(str, version)), bytecode(module)
    try:
        # On a copy, since this rewrites a module to VHLO in place. In the module's own context:
        # reading bytes would create a new one, which costs as much as all the rest.
        with module.context:
            artifact: bytes = hlo.serialize_portable_artifact(
                ir.Module.parse(code), text, b"sdy" in code
            )
    except (MLIRError, ValueError) as error:
        raise ProgramError(
            f"the module cannot be written as StableHLO {text}: {explain(error)}"
        ) from error
    return artifact


def bytecode(module: ir.Module) -> bytes:
    """Returns the module as MLIR bytecode: the fastest form, read by the same jaxlib only."""
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


def rename(module: ir.Module, name: str) -> None:
    """Names a module, as a symbol of MLIR: other signs than letters and digits become ``_``."""
    with module.context:
        module.operation.attributes["sym_name"] = ir.StringAttr.get(_NOT_IN_SYMBOLS.sub("_", name))


def parse(code: str | bytes, filename: str = "<program>") -> ir.Module:
    """Reads StableHLO text, MLIR bytecode or a portable artifact into a context of its own.

    Raises `ProgramError` with the parser's line and column.
    """
    context = new_context()
    if isinstance(code, str):
        code = code.encode()
    if not code.strip():
        raise ProgramError(f"{filename} is empty; expected a StableHLO module")
    if b"sdy" in code:  # names of dialects appear verbatim, in text and in bytecode
        register_shardy(context)
    if not code.startswith(MLIR_MAGIC):
        refuse_deep_nesting(code, filename)
    said: list[str] = []

    def listen(diagnostic: object) -> bool:
        said.append(message_of(diagnostic))
        return True  # handled: keeps the parser from writing to stderr

    with context, ir.Location.unknown():
        try:
            if is_portable_artifact(code):
                handler = context.attach_diagnostic_handler(listen)
                try:
                    return hlo.deserialize_portable_artifact(context, code)
                finally:
                    handler.detach()
            module = ir.Module.parse(code)
            module.operation.verify()
            return module
        except (MLIRError, ValueError) as error:
            raise _program_error(error, filename, [*_explain_newer(code), *said]) from error


def _explain_newer(code: bytes) -> list[str]:
    """Returns the explanation for a portable artifact of a newer StableHLO; empty for others."""
    found = re.search(rb"StableHLO_v(\d{1,9}\.\d{1,9}\.\d{1,9})\0", code[:64])
    if not is_portable_artifact(code) or found is None:
        return []
    version, ours = found[1].decode(), hlo.get_current_version()
    if parse_version(version) <= parse_version(ours):
        return []
    return [
        f"it was written for StableHLO {version}, and the installed jaxlib reads up to {ours}: "
        "upgrade jaxlib, or export the program for an older version"
    ]


def _program_error(error: Exception, filename: str, said: list[str]) -> ProgramError:
    for diagnostic in getattr(error, "error_diagnostics", ()):
        if place := place_of(diagnostic):
            line, column = place
            message = f"{filename}:{line}:{column}: {message_of(diagnostic)}"
            return ProgramError(message, line, column)
        said = [*said, message_of(diagnostic)]
    return ProgramError(f"{filename}: {'; '.join(said) or error}")


def insert_functions(
    target: ir.Module, code: bytes, title: str, number: int
) -> tuple[list[object], object]:
    """Adds the functions of a module, in bytecode, to another one; the second is its ``main``.

    They are private there; ``main`` is called after ``title``. Their names end with the numbers
    after ``number``, so that they are free if no name there ends with a higher one.
    """
    # Modules have contexts of their own; bytecode moves functions from one to the other.
    if b"sdy" in code:  # bytecode contains names of dialects as plain text
        register_shardy(target.context)
    module = ir.Module.parse(code, target.context)
    symbols = ir.SymbolTable(module.operation)
    functions = [*module.body.operations]
    names = [str(symbol_of(function)) for function in functions]
    main = names.index("main")
    names[main] = _NOT_IN_SYMBOLS.sub("_", title)
    for i, function in enumerate(functions):  # first to temporary names
        _rename(module, symbols, function, f"{i}.renamed")
    for function, old in zip(functions, names, strict=True):
        number += 1
        _rename(module, symbols, function, f"{old.rstrip('_0123456789')}_{number}")
        function.attributes["sym_visibility"] = ir.StringAttr.get("private")
    for function in functions:
        # They have one item for each argument and result, some of which dead code elimination
        # removes.
        for attributes in ("arg_attrs", "res_attrs"):
            if attributes in function.attributes:
                del function.attributes[attributes]
        target.body.append(function)
    return functions, functions[main]


def _rename(module: ir.Module, symbols: ir.SymbolTable, function: object, new: str) -> None:
    ir.SymbolTable.replace_all_symbol_uses(str(symbol_of(function)), new, module.operation)
    symbols.set_symbol_name(function, new)
