"""HLO through jaxlib: text is parsed; an optimised program has text, costs and a graph.

The graph is read from the serialised ``HloModuleProto`` (``xla/service/hlo.proto``), whose field
numbers never change, without jaxlib.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from plugrt.base.xla_environment import quiet_logging
from plugrt.errors import MissingTraceExtra, ProgramError, Unimplemented
from plugrt.interface import Executable, OptionValue, Program
from plugrt.lifetime.uninterrupted_imports import import_native
from plugrt.stablehlo.dot import DotWriter
from plugrt.wire.hlo_proto import PRIMITIVE_TYPES, read_module
from plugrt.wire.protobuf import Content, integers, messages

ESTIMATE = "XLA's HloCostAnalysis of the optimised program, in jaxlib; custom calls count as 0"


def optimized_text(executable: Executable) -> str:
    """Returns the optimised program as text: the backend's own, or its HLO as jaxlib prints it.

    Raises `Unimplemented` when the backend gives neither, and `MissingTraceExtra` without jaxlib.
    """
    try:
        return executable.as_text()
    except Unimplemented:
        text: str = _module(executable.optimized_program()).to_string()
        return text


def cost_analysis(executable: Executable) -> tuple[Mapping[str, OptionValue], str]:
    """Returns ``flops``, ``bytes accessed`` and so on, and their source.

    The figures are the backend's, or, if it has none, jaxlib's counts for the optimised program
    (`ESTIMATE`). Raises `Unimplemented` and `MissingTraceExtra` as `optimized_text` does.
    """
    try:
        return executable.cost_analysis(), "the backend"
    except Unimplemented:
        return estimate_cost(_module(executable.optimized_program())), ESTIMATE


def estimate_cost(module: object) -> dict[str, OptionValue]:
    """Returns ``flops``, ``bytes accessed`` and so on, as XLA counts them in an ``HloModule``."""
    modules: list[Any] = import_native("jaxlib.xla_client", "jaxlib._jax")
    xla_client, private = modules
    # The count is the same on every client; this one starts in a millisecond.
    return dict(private.hlo_module_cost_analysis(xla_client.make_cpu_client(), module))


def optimized_graph(executable: Executable) -> str:
    """Returns the optimised program as a Graphviz graph: `hlo_graph`, `module_graph` for MLIR.

    Raises `Unimplemented` when the backend gives no program, or one in another format.
    """
    program = executable.optimized_program()
    if program.format == "mlir":
        from plugrt.stablehlo.module_graph import module_graph
        from plugrt.stablehlo.modules import parse

        return module_graph(parse(program.code, program.name), program.name)

    return hlo_graph(program)


def parse_hlo_text(text: bytes, title: str) -> bytes:
    """Returns the serialised ``HloModuleProto`` of HLO text.

    Raises `ProgramError` with XLA's line and column.
    """
    try:
        module = _hlo_bindings().hlo_module_from_text(text.decode())
    except (RuntimeError, ValueError) as error:
        found = re.findall(r"(\d+):(\d+): error: ([^\n]*)", str(error))
        line, column = map(int, found[0][:2]) if found else (None, None)
        said = "; ".join(dict.fromkeys(words for *_, words in found))
        words = f"{line}:{column}: {said}" if found else str(error)
        raise ProgramError(f"{title} is not valid HLO text: {words}", line, column) from error
    code: bytes = module.as_serialized_hlo_module_proto()
    return code


def _module(program: Program) -> Any:
    """Returns jaxlib's ``HloModule`` of a program in a format that `read_module` accepts.

    Raises `Unimplemented` for a program that is no HLO module.
    """
    bindings = _hlo_bindings()
    try:
        content = bytes(read_module(program))
        return bindings.HloModule.from_serialized_hlo_module_proto(content)
    except (RuntimeError, ValueError) as error:
        if isinstance(error, Unimplemented):
            raise
        raise _make_no_module_error(program, error) from error


def _make_no_module_error(program: Program, error: Exception) -> Unimplemented:
    return Unimplemented(f"the optimised program {program.name!r} is not an HLO module: {error}")


def _hlo_bindings() -> Any:
    # jaxlib 0.10.2 has the classes in jaxlib._hlo and no longer in jaxlib._jax.
    for name in ("jaxlib._hlo", "jaxlib._jax"):
        try:
            with quiet_logging():
                [module] = import_native(name)
        except ImportError:
            continue
        if hasattr(module, "HloModule"):
            return module
    raise MissingTraceExtra('reading an HLO program needs jaxlib: pip install "plugrt[trace]"')


_OTHER_TYPES = {13: "tuple", 14: "opaque", 17: "token"}
_TUPLE = 13
_DIMENSIONS = 14
_DETAILS = (11, 28, 63)
"""Fields of an instruction that are shown: a fusion's kind, a custom call's target, a comparison's
direction."""
_INTEGERS = {2: "?", 4: "<i4", 5: "<i8", 6: "<u4", 7: "<u8"}
"""Fields of a literal with numbers, and their dtypes."""
_BYTES: dict[int, Any] = {
    3: "u1", 8: "<f4", 9: "<f8", 11: "<f2", 12: "<c8", 13: ml_dtypes.bfloat16, 15: "i1",
    16: "<u2", 17: "<i2", 18: "<c16",
}  # fmt: skip
"""Fields of a literal that hold elements in memory order."""
_MOST_ELEMENTS = 8
"""Constants of more elements are summarised."""


def hlo_graph(program: Program) -> str:
    """Returns DOT text: a node per instruction, a cluster per computation.

    A node has the opcode, details, the name, the type and the source line. Numbers on edges are
    operands' indices; dashed edges lead from a computation's result to the instruction that uses
    it. Raises `Unimplemented` for a program that is no HLO module.
    """
    try:
        return _HloGraph(read_module(program), program.name).draw()
    except (ValueError, RecursionError) as error:
        raise _make_no_module_error(program, error) from error


class _HloGraph:
    def __init__(self, module: Content, name: str) -> None:
        self._dot = DotWriter(name)
        self._computations = messages(module, 3)
        self._entry = _integer(module, 6)
        self._frames = _Frames(module)
        self._roots: dict[int, str] = {}
        self._calls: list[tuple[int, str]] = []

    def draw(self) -> str:
        for computation in sorted(self._computations, key=lambda c: _integer(c, 5) != self._entry):
            self._draw(computation)
        for called, user in self._calls:
            if called in self._roots:
                self._dot.edge(self._roots[called], user, returned=True)
        return self._dot.text()

    def _draw(self, computation: Content) -> None:
        number, root = _integer(computation, 5), _integer(computation, 6)
        entry = "entry " if number == self._entry else ""
        self._dot.open_cluster(f"{entry}{_text(computation, 1)}")
        nodes: dict[int, str] = {}
        instructions = messages(computation, 2)
        for instruction in instructions:
            own = _integer(instruction, 35)
            nodes[own] = self._node(instruction, own == root)
            self._calls += [(called, nodes[own]) for called in integers(instruction, 38)]
        if root in nodes:
            self._roots[number] = nodes[root]
        for instruction in instructions:
            operands = integers(instruction, 36)
            for i, operand in enumerate(operands):
                if operand not in nodes:
                    raise ValueError(
                        f"%{_text(instruction, 1)} names the operand {operand}, which is not there"
                    )
                label = str(i) if len(operands) > 1 else ""
                self._dot.edge(nodes[operand], nodes[_integer(instruction, 35)], label)
        self._dot.close_cluster()

    def _node(self, instruction: Content, is_root: bool) -> str:
        opcode = _text(instruction, 2)
        role = {"parameter": "parameter", "constant": "constant"}.get(opcode, "operation")
        metadata = _message(instruction, 7)
        where = self._frames.line(metadata)
        lines = [" ".join(_head(opcode, instruction, metadata)), f"%{_text(instruction, 1)}"]
        lines += [_literal(_message(instruction, 8)) if opcode == "constant" else ""]
        lines += [_shape(_message(instruction, 3)), os.path.basename(where)]
        return self._dot.node(lines, role="result" if is_root else role, tooltip=where)


class _Frames:
    """The source lines of instructions: their own, or in the module's table of stack frames."""

    def __init__(self, module: Content) -> None:
        index = _message(module, 17)
        self._files, self._locations, self._frames = (messages(index, n) for n in (1, 3, 4))

    def line(self, metadata: Content) -> str:
        """Returns ``file:line``, empty where none is stated."""
        name, line = _text(metadata, 3), _integer(metadata, 4)
        if not name:
            frame = _at(self._frames, _integer(metadata, 15))
            location = _at(self._locations, _integer(frame, 1))
            name = bytes(_at(self._files, _integer(location, 1))).decode(errors="replace")
            line = _integer(location, 3)
        return f"{name}:{line}" if name else ""


def _at(table: list[memoryview], number: int) -> Content:
    """Returns an entry of a table by its number, from 1; an empty message if it is missing."""
    return table[number - 1] if 0 < number <= len(table) else b""


def _head(opcode: str, instruction: Content, metadata: Content) -> Iterator[str]:
    """Yields the words for the first line of an instruction's node."""
    yield opcode
    if opcode == "parameter":
        yield f"{_integer(instruction, 9)}"
        yield from filter(None, [_text(metadata, 2)])
    if opcode == "get-tuple-element":
        yield f"index {_integer(instruction, 13)}"
    if dimensions := integers(instruction, _DIMENSIONS):
        yield f"dimensions {','.join(map(str, dimensions))}"
    yield from filter(None, (_text(instruction, number) for number in _DETAILS))


def _shape(shape: Content) -> str:
    """Returns HLO's spelling of a type, such as ``f32[2,3]``."""
    number = _integer(shape, 2)
    if number == _TUPLE:
        return f"({', '.join(map(_shape, messages(shape, 4)))})"
    name = _OTHER_TYPES.get(number) or _element(PRIMITIVE_TYPES.get(number, f"type{number}"))
    return f"{name}[{','.join(map(str, integers(shape, 3)))}]"


def _element(dtype: str) -> str:
    """Returns HLO's name of a dtype: ``s32`` of ``int32``, ``f8e4m3fn`` of ``float8_e4m3fn``."""
    if dtype == "bool":
        return "pred"
    for word, letter in (("uint", "u"), ("int", "s"), ("float", "f"), ("complex", "c")):
        dtype = dtype.replace(word, letter)
    return dtype.replace("_", "")


def _literal(literal: Content) -> str:
    """Returns the elements of a small constant; of a larger one their number."""
    count = math.prod(integers(_message(literal, 1), 3))
    if count > _MOST_ELEMENTS:
        return f"{count} elements"
    for number, dtype in _INTEGERS.items():
        if values := integers(literal, number):
            whole = np.array([value % 2**64 for value in values], np.uint64)
            return ", ".join(map(str, whole.astype(dtype)))
    for number, dtype in _BYTES.items():
        if parts := messages(literal, number):
            return ", ".join(map(str, np.frombuffer(b"".join(parts), dtype)))
    return ""


def _message(content: Content, number: int) -> Content:
    """Returns a message within a message; an empty one if it is missing."""
    return b"".join(messages(content, number))


def _text(content: Content, number: int) -> str:
    return b"".join(messages(content, number)[-1:]).decode(errors="replace")


def _integer(content: Content, number: int) -> int:
    return (integers(content, number) or [0])[-1]
