"""Reads programs in HLO, as XLA writes and dumps them: text, ``HloModuleProto``, ``HloProto``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from plugrt.errors import MissingTraceExtra, ProgramError, Unimplemented
from plugrt.interface import Client, Program, TensorType
from plugrt.programs.parsing import has_bindings
from plugrt.wire import hlo_proto
from plugrt.wire.hlo_proto import last_integer, last_text, one_message
from plugrt.wire.protobuf import Content, fields, integers, messages, read_varint

_MODULE_OF_CONFIG = 1
_HLO_PROTO = {1, 3}
"""The fields of an ``HloProto``: a module, and its buffer assignment."""
_NAME, _COMPUTATIONS, _HOST_PROGRAM_SHAPE, _ENTRY = 1, 3, 4, 6
_ENTRY_NAME_KEY, _COMPUTATIONS_KEY = b"\x12", b"\x1a"
"""The field keys that follow a module's name."""
_INSTRUCTIONS, _COMPUTATION_ID, _ROOT = 2, 5, 6
_OPCODE, _SHAPE, _PARAMETER_NUMBER, _ID, _OPERANDS = 2, 3, 9, 35, 36
_LOCAL = 2**32 - 1
"""Mask of the instruction id within its computation; the upper bits, if any, are the computation's.
"""
_PARAMETERS, _RESULT = 1, 2
_ELEMENT_TYPE, _DIMENSIONS, _TUPLE_SHAPES = 2, 3, 4


def find_module(code: bytes) -> bytes | None:
    """Returns the ``HloModuleProto`` in these bytes, which may be in an ``HloProto`` of a dump.

    None for bytes that do not begin with a module's name and the name of its entry computation.
    Raises `ValueError`, naming the damage, for other bytes that are not a module.
    """
    module = code
    if _is_module_start(_read_first_message(code)):
        other = {number for number, _ in fields(code)} - _HLO_PROTO
        if other:
            raise ValueError(f"an HloProto has no field {min(other)}")
        module = bytes(one_message(code, _MODULE_OF_CONFIG, "module"))
    elif not _is_module_start(code):
        return None
    require_module(module)
    return module


def _read_first_message(code: bytes) -> bytes:
    """Returns the available bytes of the first field; empty if the bytes are not a message."""
    try:
        _, at = read_varint(memoryview(code), 1)
    except ValueError:
        return b""
    return code[at:]


def _is_module_start(code: bytes) -> bool:
    try:
        size, at = read_varint(memoryview(code), 1)
    except ValueError:
        return False
    after = code[at + size : at + size + 1]
    return code.startswith(b"\n") and after in (_ENTRY_NAME_KEY, _COMPUTATIONS_KEY)


def require_module(module: Content) -> None:
    """Raises `ValueError`, naming the fault, for a message that is not a valid module.

    A module has a name, a signature, and computations. A tuple's operands have the types of its
    elements, and the entry computation has the types of the signature: XLA ends the process if
    these differ (jaxlib 0.10.2).
    """
    one_message(module, _NAME, "name")
    # Workaround for xla-hlo-types
    shape = one_message(module, _HOST_PROGRAM_SHAPE, "signature")
    computations = messages(module, _COMPUTATIONS)
    if not computations:
        raise ValueError("it has no computations")
    entry: int | None = last_integer(module, _ENTRY)
    for computation in computations:
        instructions = {
            last_integer(instruction, _ID) & _LOCAL: instruction
            for instruction in messages(computation, _INSTRUCTIONS)
        }
        name = last_text(computation, _NAME)
        root = instructions.get(last_integer(computation, _ROOT) & _LOCAL)
        if root is None:
            raise ValueError(f"its computation {name!r} has no root among its instructions")
        for instruction in instructions.values():
            _require_tuple(instruction, instructions)
        if last_integer(computation, _COMPUTATION_ID) == entry:
            _require_signature(shape, instructions.values(), root)
            entry = None
    if entry is not None:
        raise ValueError(f"it has no computation with the number of its entry, {entry}")


def _require_tuple(instruction: Content, known: Mapping[int, Content]) -> None:
    if last_text(instruction, _OPCODE) != "tuple":
        return
    elements = messages(one_message(instruction, _SHAPE, "type"), _TUPLE_SHAPES)
    operands = [number & _LOCAL for number in integers(instruction, _OPERANDS)]
    found = [_kind(one_message(known[o], _SHAPE, "type")) for o in operands if o in known]
    if found != [*map(_kind, elements)]:
        raise ValueError(
            f"its tuple {last_text(instruction, _NAME)!r} has {len(elements)} elements, and "
            f"{len(operands)} operands that are not of their types"
        )


def _require_signature(shape: Content, instructions: Iterable[Content], root: Content) -> None:
    parameters = {
        last_integer(i, _PARAMETER_NUMBER): _kind(one_message(i, _SHAPE, "type"))
        for i in instructions
        if last_text(i, _OPCODE) == "parameter"
    }
    stated = dict(enumerate(map(_kind, messages(shape, _PARAMETERS))))
    if parameters != stated:
        raise ValueError("the parameters of its entry computation are not those of its signature")
    if _kind(one_message(root, _SHAPE, "type")) != _kind(one_message(shape, _RESULT, "result")):
        raise ValueError("the result of its entry computation is not that of its signature")


def _kind(shape: Content) -> object:
    """Returns the element type and dimensions of a shape; for a tuple a list for its elements."""
    parts = messages(shape, _TUPLE_SHAPES)
    return last_integer(shape, _ELEMENT_TYPE), integers(shape, _DIMENSIONS), [*map(_kind, parts)]


_TEXT = re.compile(rb"(?:\s|//[^\n]*\n|/\*.*?\*/)*HloModule\b([^\n]*)", re.DOTALL)
_LEFT_OUT = re.compile(rb"\bconstant\(\{\.\.\.\}\)")
_COUNTS = re.compile(rb"\b(replica_count|num_partitions)=(\d+)")


def read_hlo(code: bytes, title: str, name: str) -> Program | None:
    """Returns the program in the format ``hlo``; None for bytes that are not HLO.

    Its name is ``name``, else the module's. Raises `ProgramError` for text that XLA cannot parse,
    with line and column; for text with elided constants; for text of a program on several devices,
    since the format does not state how many; and for damaged bytes. Raises `MissingTraceExtra` for
    text without jaxlib.
    """
    if header := _TEXT.match(code):
        code = _parse_text(code, header[1], title)
    elif not code.startswith(b"\n"):  # the key of a module's name, or of an HloProto's module
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
    if _LEFT_OUT.search(code):  # XLA's parser reads elided constants as zeros
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
    """Returns the types of an HLO program's arguments, and whether they are one tuple.

    Raises `ProgramError` for parameters that are not arrays, and for a damaged program.
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
    """Raises `Unimplemented` if the backend does not support the program's format."""
    taken = client.capabilities.program_formats
    if program.format not in taken:
        raise Unimplemented(
            f"it takes programs in {' and '.join(map(repr, taken))}, and this one is in "
            f"{program.format!r}. Fix: compile it for a backend that takes {program.format!r} "
            "(backend='cpu' takes HLO), or give StableHLO, as "
            "jax.jit(f).lower(x).as_text() writes"
        )
