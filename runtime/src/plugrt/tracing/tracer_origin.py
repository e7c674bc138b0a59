"""The origin of a traced value, for error messages: its source line and argument names."""

from __future__ import annotations

from typing import Protocol

from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.locations import file_and_line, name_at

_FAR = 1000
"""The number of operations after which the search for arguments stops."""


class HasOrigin(Protocol):
    """What is asked of a `Tracer`."""

    @property
    def origin(self) -> str: ...
    @property
    def _value(self) -> ir.Value | None: ...


def describe_origin(tracer: HasOrigin) -> str:
    """Returns a clause such as ``, computed at train.py:12 from argument x,``; empty if unknown."""
    if tracer.origin:
        return f", which is {tracer.origin},"
    value = tracer._value
    if value is None or isinstance(value, ir.BlockArgument):
        return ""
    line = file_and_line(value.owner.location)
    names = _find_arguments(value)
    made = f" at {line[0]}:{line[1]}" if line else ""
    of = f" from argument{'s' if len(names) > 1 else ''} {', '.join(names)}" if names else ""
    return f", computed{made}{of}," if made or of else ""


def _find_arguments(value: ir.Value) -> list[str]:
    names: dict[str, None] = {}
    waiting, seen = [value], 0
    known: set[ir.Value] = set()
    while waiting and seen < _FAR:
        value = waiting.pop()
        if value in known:
            continue
        known.add(value)
        seen += 1
        if isinstance(value, ir.BlockArgument):
            if name := name_at(value.location):
                names[name] = None
        else:
            waiting += value.owner.operands
    return sorted(names)
