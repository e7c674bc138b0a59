"""Programs in HLO, in the forms of XLA and its dumps: text, ``HloModuleProto`` and ``HloProto``."""

from __future__ import annotations

import re

from plugrt.errors import MissingTraceExtra, ProgramError, Unimplemented
from plugrt.interface import Client, Program, TensorType
from plugrt.programs.parsing import has_bindings
from plugrt.wire import hlo_proto
from plugrt.wire.hlo_module import find_module, require_module

_TEXT = re.compile(rb"(?:\s|//[^\n]*\n|/\*.*?\*/)*HloModule\b([^\n]*)", re.DOTALL)
_LEFT_OUT = re.compile(rb"\bconstant\(\{\.\.\.\}\)")
_COUNTS = re.compile(rb"\b(replica_count|num_partitions)=(\d+)")


def read_hlo(code: bytes, title: str, name: str) -> Program | None:
    """Returns the program in the format ``hlo`` that HLO is; None for anything else.

    Its name is ``name``, else the module's. Raises `ProgramError` with XLA's line and column for
    text that it cannot parse, for text without its large constants, and for one of a program on
    several devices, which the format does not state, and for damaged bytes; `MissingTraceExtra` for
    text without jaxlib.
    """
    if header := _TEXT.match(code):
        code = _parse_text(code, header[1], title)
    elif not code.startswith(b"\n"):  # the field of a module's name, or of a module
        return None
    try:
        module = find_module(code)
    except ValueError as error:
        raise ProgramError(f"{title} is a serialised HLO module that is damaged: {error}") from None
    if module is None:
        return None
    program = Program(module, "hlo", name or hlo_proto.module_name(module))
    read_parameters(program)
    return program


def _parse_text(code: bytes, header: bytes, title: str) -> bytes:
    for count, number in _COUNTS.findall(header):
        if int(number) > 1:
            raise ProgramError(
                f"{title} is HLO for several devices ({count.decode()}={int(number)}), and only "
                "HLO for one device can be run. StableHLO states such counts"
            )
    if _LEFT_OUT.search(code):  # XLA's parser reads zeros there
        raise ProgramError(
            f"{title} is HLO text without its large constants, which are written "
            "constant({...}); print it with them: as_hlo_text(print_large_constants=True), or "
            "XLA_FLAGS=--xla_dump_large_constants"
        )
    if not has_bindings():
        raise MissingTraceExtra(
            f'{title} is HLO text, and reading that needs jaxlib: pip install "plugrt[trace]". A '
            "serialised HloModuleProto needs none"
        )
    from plugrt.stablehlo.hlo import parse_hlo_text

    return parse_hlo_text(code, title)


def read_parameters(program: Program) -> tuple[tuple[TensorType, ...], bool]:
    """Returns the types of an HLO program's arguments, and whether they are one tuple in it.

    Raises `ProgramError` for parameters that are no arrays, and for a damaged program.
    """
    try:
        module = hlo_proto.read_module(program)
        require_module(module)
        return hlo_proto.flat_parameters(module)
    except (ValueError, RecursionError) as error:
        raise ProgramError(f"the HLO of program {program.name!r} is damaged: {error}") from None
    except KeyError as error:
        raise ProgramError(
            f"program {program.name!r} cannot be run on arrays: its parameters are neither arrays "
            "nor one tuple of arrays"
        ) from error


def require_format(program: Program, client: Client) -> None:
    """Raises `Unimplemented` for a backend without that format of programs."""
    taken = client.capabilities.program_formats
    if program.format not in taken:
        raise Unimplemented(
            f"it takes programs in {' and '.join(map(repr, taken))}, and this one is in "
            f"{program.format!r}. Fix: compile it for a backend that takes {program.format!r} "
            "(backend='cpu' takes HLO), or give StableHLO, as "
            "jax.jit(f).lower(x).as_text() writes"
        )
