"""`rewrite_program`: lets registered functions replace a program before it is compiled.

They are those of ``config.program_rewriters`` and, before these, those that installed packages
offer by the hook ``plugrt_program_rewriters``. JAX has had the same for outfeeds, internally.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from plugrt.errors import ArgumentTypeError, ProgramError
from plugrt.interface import Client, Program
from plugrt.plugins.offers.installed_rewriters import installed_rewriters
from plugrt.plugins.selection.backends import process_backends
from plugrt.settings.declarations import config

if TYPE_CHECKING:
    from plugrt.plugins.hookspecs import ProgramRewriter


def rewrite_program(program: Program, client: Client) -> Program:
    """Returns what the rewriters make of a program, one after the other.

    Each is called with the program and the client, and returns None for a program that it leaves
    as it is, a `Program`, or its code: StableHLO text or bytes. Raises `ProgramError`, which names
    the rewriter, for what it raises and for a program of another type.
    """
    for rewriter in (*_installed(), *config.program_rewriters):
        try:
            returned = rewriter(program, client)
        except Exception as error:
            raise ProgramError(
                f"the program rewriter {_name(rewriter)} raised {type(error).__name__} for "
                f"{program.name!r}: {error}"
            ) from error
        if returned is not None:
            replaced = _read(returned, program, rewriter)
            _check_type(program, replaced, rewriter)
            program = _translate(replaced, client)
    return program


def _installed() -> Sequence[ProgramRewriter]:
    return installed_rewriters(process_backends().table)


def _read(returned: Any, program: Program, rewriter: Any) -> Program:
    if isinstance(returned, Program):
        return replace(returned, callbacks={**program.callbacks, **returned.callbacks})
    if isinstance(returned, str | bytes):
        code = returned.encode() if isinstance(returned, str) else returned
        return replace(program, code=code, format="mlir")
    raise ArgumentTypeError(
        f"the program rewriter {_name(rewriter)} returned {returned!r:.60} for {program.name!r}; "
        "it returns a Program, StableHLO as text or bytes, or None for the program as it is"
    )


def _check_type(program: Program, replaced: Program, rewriter: Any) -> None:
    """Raises `ProgramError` unless both have the same parameters and results.

    Nothing is checked without jaxlib, and of programs that are not StableHLO.
    """
    if {program.format, replaced.format} != {"mlir"} or not _can_parse():
        return
    before = _main_type(program)
    try:
        after = _main_type(replaced)
    except ProgramError as error:
        raise ProgramError(
            f"the program rewriter {_name(rewriter)} returned for {program.name!r} what is no "
            f"StableHLO: {error}"
        ) from error
    if before != after:
        raise ProgramError(
            f"the program rewriter {_name(rewriter)} made a program of the type {after} of "
            f"{program.name!r}, whose type is {before}; calls need the same parameters and results"
        )


def _main_type(program: Program) -> str:
    from plugrt.stablehlo.modules import parse
    from plugrt.stablehlo.regions import functions_by_name

    main = functions_by_name(parse(program.code, program.name)).get("main")
    return str(main.attributes["function_type"]) if main is not None else "no function main"


def _translate(program: Program, client: Client) -> Program:
    """Returns text and newer bytecode as the client reads it."""
    if program.format != "mlir" or not _can_parse():
        return program
    from plugrt.stablehlo.modules import parse, portable_artifact
    from plugrt.stablehlo.passes import legalize_chlo

    module = parse(program.code, program.name)
    legalize_chlo(module)
    version = client.capabilities.stablehlo_current_version
    return replace(program, code=portable_artifact(module, version), format="mlir")


def _can_parse() -> bool:
    return importlib.util.find_spec("jaxlib") is not None


def _name(rewriter: Any) -> str:
    module, name = getattr(rewriter, "__module__", ""), getattr(rewriter, "__qualname__", "")
    return f"{module}.{name}" if name else repr(rewriter)
