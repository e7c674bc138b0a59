"""Checks that refuse programs which would crash a compiler or parser by stack overflow.

XLA inlines calls and MLIR reads nested text by recursion: both overflow the stack, in JAX as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from plugrt.errors import ProgramError
from plugrt.stablehlo.attributes import find_attribute, text_of
from plugrt.stablehlo.bindings import ir

# Workaround for mlir-deep-text
DEEPEST = 500
"""The maximum nesting of text; the parser ends the process at thousands, programs have tens."""

# Workaround for xla-deep-calls
DEEPEST_CALLS = 150
"""The maximum depth of calls. A thread of jaxlib 0.10's CPU client ends the process at 187
(``ConvertToHloModule`` calls itself for each), XLA's CPU plugin for the C API beyond 500."""

_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|//[^\n]*|->|[<>]=|[\[({<]|[\])}>]')
_OPENING = frozenset((b"[", b"(", b"{", b"<"))
_CLOSING = frozenset((b"]", b")", b"}", b">"))


def refuse_deep_nesting(text: bytes, name: str) -> None:
    """Raises `ProgramError` for a text that nests deeper than `DEEPEST`."""
    if sum(map(text.count, _OPENING)) <= DEEPEST:
        return
    depth = 0
    for found in _BRACKETS.finditer(text):
        bracket = found.group()
        if bracket in _OPENING:
            depth += 1
            if depth > DEEPEST:
                line = text.count(b"\n", 0, found.start()) + 1
                raise ProgramError(
                    f"program {name!r} nests deeper than {DEEPEST} brackets (line {line}), which "
                    "would end the process in MLIR's parser"
                )
        elif bracket in _CLOSING:
            depth -= 1


def refuse_calls(module: ir.Module, name: str) -> None:
    """Raises `ProgramError` where functions call themselves, too deep, or one without a body."""
    functions = {
        text_of(op.attributes["sym_name"]): op.operation
        for op in module.body.operations
        if op.operation.name == "func.func"
    }
    empty = {f for f, op in functions.items() if not op.regions[0].blocks}
    if "main" in empty:
        raise ProgramError(f"program {name!r} declares main, and has no body for it")
    calls = {
        f: [c for c in _find_called_symbols(op) if c in functions] for f, op in functions.items()
    }
    for caller, called in calls.items():
        if lacking := empty.intersection(called):
            raise ProgramError(
                f"program {name!r}: {caller!r} calls {sorted(lacking)}, declared without a body"
            )
    circle, depth = _follow(calls)
    if circle:
        raise ProgramError(
            f"program {name!r} calls itself ({' calls '.join(circle)}), which no compiler of "
            "StableHLO takes. Fix: a stablehlo.while"
        )
    if depth > DEEPEST_CALLS:
        raise ProgramError(
            f"program {name!r} has functions that call each other {depth} deep, which would end "
            f"the process in XLA's compilers; plugrt compiles up to {DEEPEST_CALLS}. Fix: "
            "jit(..., inline=True) for inner functions, or a loop (lax.fori_loop, lax.scan)"
        )


_CALLS = ("callee", "called_computations", "decomposition")
"""The attributes with which operations refer to functions."""


def _find_called_symbols(operation: ir.Operation) -> Iterator[str]:
    """Yields the symbols that the calls within an operation name."""
    waiting = [op for region in operation.regions for block in region for op in block]
    while waiting:
        op = waiting.pop().operation
        if "call" in op.name or "composite" in op.name:
            for name in _CALLS:
                yield from _symbols(find_attribute(op, name))
        waiting += [inner for region in op.regions for block in region for inner in block]


def _symbols(attribute: object) -> Iterator[str]:
    """Yields the symbols in an attribute: itself, or the elements of a list."""
    if isinstance(attribute, ir.FlatSymbolRefAttr):
        yield text_of(attribute)
    elif isinstance(attribute, ir.ArrayAttr):
        for each in attribute:
            yield from _symbols(each)


def _follow(calls: dict[str, list[str]]) -> tuple[list[str], int]:
    """Returns functions that form a cycle of calls, the first one again at the end; and the depth.

    The list is empty without a cycle; the depth is the greatest number of nested calls.
    """
    finished: dict[str, int] = {}
    for start in calls:
        path, todo = [], [(start, iter(calls[start]))] if start not in finished else []
        path += [start] if todo else []
        while todo:
            called = next(todo[-1][1], None)
            if called is None:
                todo.pop()
                ended = path.pop()
                finished[ended] = max((finished[c] + 1 for c in calls[ended]), default=0)
            elif called in path:
                return [*path[path.index(called) :], called], 0
            elif called not in finished:
                path.append(called)
                todo.append((called, iter(calls[called])))
    return [], max(finished.values(), default=0)
